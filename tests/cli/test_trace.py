"""`convsched trace`: traces of a CPU and of simulated GPUs pass the checker, planted faults do not."""
import copy
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import harness
import test_merge
from harness import BAD_INPUT, FAILURE, INTERRUPTED, ROOT, USAGE, CommandTest

sys.path.insert(0, str(ROOT / "tools"))
import check_trace  # noqa: E402

PROFILES = ROOT / "tests" / "data" / "profiles"
POLICIES = ("sequential", "streams", "opara", "ios", "coselect")


def slices(trace, pid):
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == pid]


class TraceTest(CommandTest):
    def trace(self, model, *args, name="t.json"):
        """Writes a trace, which passes the checker; returns it and what was printed."""
        out, _ = self.accepted(self.execute("trace", model, "-o", name, *args, timeout=500))
        self.assertIn(name, out)
        trace = json.loads((self.folder / name).read_text())
        graph = json.loads(pathlib.Path(model).read_text())
        self.assertEqual(check_trace.check(trace, graph), [])
        return trace, out


class Cpu(TraceTest):
    def test_every_policy(self):
        model = self.model()
        for policy in POLICIES:
            with self.subTest(policy):
                trace, out = self.trace(model, "--device", "cpu", "--policy", policy, "--samples", 4, "--runs", 3,
                                        "--search-seconds", 0)
                other = trace["otherData"]
                self.assertEqual((other["model"], other["plan"]["policy"], other["simulated"]), ("tiny", policy, False))
                self.assertEqual(len(other["latency_us"]["samples"]), 4)
                self.assertEqual(len(other["traced"]["spans_us"]), 3)
                self.assertEqual({n for e in slices(trace, 1) for n in e["args"]["nodes"]}, {"conv1", "relu1", "conv2"})
                self.assertEqual([entry["node"] for entry in other["nodes_without_kernel"]], ["cat"])
                self.assertIn("median of 4, without a tracer", out)
                self.assertIn("--policy " + policy, other["command"])

    def test_branches_run_on_two_streams(self):
        trace, _ = self.trace(self.model(), "--device", "cpu", "--streams", 2, "--policy", "streams")
        if os.cpu_count() > 1:
            self.assertEqual({event["tid"] for event in slices(trace, 1)}, {1, 2})
        sequential, _ = self.trace(self.model(), "--device", "cpu", "--policy", "sequential")
        self.assertEqual({event["tid"] for event in slices(sequential, 1)}, {1})

    def test_a_plan_file(self):
        model = self.model()
        self.accepted(self.execute("plan", model, "--device", "cpu", "--policy", "opara", "--json", "p.json"))
        plan = json.loads((self.folder / "p.json").read_text())
        trace, _ = self.trace(model, "--device", "cpu", "--plan", "p.json")
        self.assertEqual(trace["otherData"]["plan"]["policy"], "opara")
        for event in slices(trace, 1):
            task = plan["tasks"][event["args"]["position"]]
            self.assertEqual((event["name"], event["args"]["candidate"], event["args"]["stream"]),
                             (task["name"], task["candidate"]["id"], task["stream"]))
        self.refused(self.execute("trace", model, "--device", "cpu", "--plan", "p.json", "--policy", "streams"), USAGE,
                     "goes without --policy")

    @unittest.skipIf(harness.SHORT, "long under a sanitizer")
    def test_a_larger_network(self):
        trace, _ = self.trace(ROOT / "models" / "googlenet.json", "--device", "cpu", "--samples", 3)
        self.assertGreater(len(slices(trace, 1)), 60)
        self.assertEqual(len(slices(trace, 1)), trace["otherData"]["plan"]["tasks"])

    def test_the_name_when_none_is_given(self):
        self.accepted(self.execute("trace", self.model(), "--device", "cpu", "--samples", 2))
        self.assertTrue((self.folder / "tiny.trace.json").exists())

    def test_arena_and_batch(self):
        trace, _ = self.trace(self.model(), "--device", "cpu", "--batch", 3)
        self.assertEqual(trace["otherData"]["batch"], 3)
        most = max(sum(event["args"].values()) for event in trace["traceEvents"]
                   if event["ph"] == "C" and event["pid"] == 1)
        # Input and output live all the time: (3 + 8) channels of 8×8 f32 in three images.
        self.assertGreaterEqual(most, 3 * 11 * 64 * 4)
        self.assertLessEqual(most, trace["otherData"]["plan"]["arena_bytes"])


class Sim(TraceTest):
    cold = True

    def sim(self, *args, model="googlenet", dtype="f16", batch=1, device=None):
        return self.trace(ROOT / "models" / f"{model}.json", "--dtype", dtype, "--batch", batch, "--device",
                          device or f"sim:{PROFILES / f'h100-{dtype}-b{batch}.jsonl.gz'}", *args)

    def test_every_policy(self):
        for dtype, batch in (("f16", 1), ("tf32", 32)):
            for policy in POLICIES:
                with self.subTest(policy=policy, dtype=dtype):
                    trace, out = self.sim("--policy", policy, dtype=dtype, batch=batch)
                    self.assertIn("nothing was run", out)
                    self.assertEqual(slices(trace, 1), [])
                    names = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
                    self.assertEqual(names, {"simulated"})
                    last = max(check_trace.end_of(event) for event in slices(trace, 2))
                    # A trace begins with the first kernel, the prediction with its launch.
                    predicted = trace["otherData"]["plan"]["predicted_us"]
                    self.assertTrue(predicted - 1 < last <= predicted + 0.001, (last, predicted))
                    for event in slices(trace, 2):
                        self.assertLessEqual(event["args"]["occupancy_percent"], 100)

    def test_launches_of_several_kernels(self):
        trace, _ = self.sim()
        several = [event for event in slices(trace, 2) if event["args"]["kernels_of_launch"] > 1]
        self.assertGreater(len(several), 10)

    def test_merged_launches(self):
        """One slice for all nodes of a merged launch."""
        with gzip.open(test_merge.RECORDED, "rt") as recorded:
            merging = self.file("merging.jsonl", "".join(test_merge.with_merging(recorded)))
        trace, _ = self.sim("--policy", "coselect", "--streams", 2, device=f"sim:{merging}")
        merged = [event for event in slices(trace, 2) if " + " in event["name"]]
        self.assertGreater(len(merged), 4)
        for event in merged:
            names = event["name"].split(" + ")
            self.assertLessEqual(set(names), set(event["args"]["nodes"]))
            self.assertEqual(event["args"]["candidate"], test_merge.ID)
            self.assertIsNone(event["args"]["grid"])  # of the merged launch it is not recorded

    def test_every_recorded_model(self):
        trace, _ = self.sim(model="inception_v3")
        self.assertGreater(len(slices(trace, 2)), 90)


class Output(TraceTest):
    """What cannot be written is said before anything is measured."""
    cold = True

    def refused_early(self, *args, code, names, model=None):
        self.refused(self.execute("trace", model or self.model(), "--device", "cpu", *args), code, *names)
        self.assertFalse((self.folder / "cache").exists(), "something was measured")

    def test_paths(self):
        (self.folder / "folder").mkdir()
        self.refused_early("-o", "no/where.json", code=FAILURE, names=["no/where.json"])
        self.refused_early("-o", "folder", code=FAILURE, names=["folder"])
        self.refused_early("-o", "tiny.json/t.json", code=FAILURE, names=["tiny.json/t.json"])
        self.refused_early("-o", "x" * 300, code=FAILURE, names=["xxx"])
        self.refused_early("-o", "", code=USAGE, names=['--output ""'])
        self.refused_early("-o", "-", code=USAGE, names=["--output -"])

    def test_files_that_are_read(self):
        model = self.model()
        before = pathlib.Path(model).read_bytes()
        self.refused_early("-o", "tiny.json", code=USAGE, names=["--output tiny.json", "which is read"], model=model)
        os.symlink("tiny.json", self.folder / "link.json")
        self.refused_early("-o", "link.json", code=USAGE, names=["which is read"], model=model)
        plan = self.file("tiny.trace.json", "{}")
        self.refused_early("--plan", plan, code=USAGE, names=["tiny.trace.json", "which is read"], model=model)
        self.assertEqual(pathlib.Path(model).read_bytes(), before)

    def test_a_full_device(self):
        self.refused(self.execute("trace", self.model(), "--device", "cpu", "-o", "/dev/full", "--samples", 2), FAILURE,
                     "/dev/full")

    def test_an_old_trace_stays_where_nothing_comes_of_it(self):
        old = pathlib.Path(self.file("old.json", "old"))
        self.refused(self.execute("trace", "missing.json", "--device", "cpu", "-o", "old.json"), FAILURE, "missing.json")
        self.assertEqual(old.read_text(), "old")

    def test_interrupt(self):
        old = pathlib.Path(self.file("t.json", "old"))
        process = self.start("trace", self.model(), "--device", "cpu", "-o", "t.json", "--samples", 1000000)
        time.sleep(4)
        self.assertIsNone(process.poll(), "ended before it could be interrupted")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertIn("interrupted", err)
        self.assertEqual(old.read_text(), "old")

    def test_use(self):
        self.refused_early("--policy", "all", code=USAGE, names=["--policy all"])
        self.refused_early("--batch", "1,2", code=USAGE, names=["one --batch"])
        self.refused_early("--runs", "0", code=USAGE, names=["--runs", "1 to 1000"])
        self.refused_early("--runs", "1001", code=USAGE, names=["--runs", "1 to 1000"])
        self.refused_early("--json", "x", code=USAGE, names=["--json"])
        self.refused_early(code=BAD_INPUT, names=["nodes[1].op"],
                           model=self.model(lambda graph: graph["nodes"][1].update(op="Rleu")))
        out, _ = self.accepted(self.execute("trace", "--help"))
        self.assertIn("--runs=N", out)
        self.assertIn("convsched trace models/googlenet.json", out)


# ---- Planted faults: what is changed, and what the checker says ----

def first(trace, kind="X", pid=1):
    return next(event for event in trace["traceEvents"] if event["ph"] == kind and event["pid"] == pid)


def last(trace, kind="X", pid=1):
    return next(event for event in reversed(trace["traceEvents"]) if event["ph"] == kind and event["pid"] == pid)


def of_arena(trace):
    return [event for event in trace["traceEvents"] if event["name"] == check_trace.ARENA and event["pid"] == 1]


def overlap(trace):
    """The second slice of a stream starts in the first."""
    a, b = [event for event in slices(trace, 1) if event["tid"] == first(trace)["tid"]][:2]
    b["ts"] = a["ts"] + a["dur"] / 2
    b["dur"] = b["args"]["end_us"] - b["ts"]
    b["args"]["start_us"] = b["ts"]


def drop(trace, event):
    trace["traceEvents"].remove(event)


def rename(trace, pid, old, new):
    for event in slices(trace, pid):
        event["args"]["nodes"] = [new if name == old else name for name in event["args"]["nodes"]]


def too_soon(trace):
    """A slice starts and ends before one of another stream that it depends on has ended: by its args, too."""
    flow = next(event for event in trace["traceEvents"] if event["ph"] == "f" and event["pid"] == 1)
    b = next(event for event in slices(trace, 1) if event["tid"] == flow["tid"] and
             abs(event["ts"] - flow["ts"]) < 0.01)
    start = next(event for event in trace["traceEvents"] if event["ph"] == "s" and event["id"] == flow["id"])
    a = next(event for event in slices(trace, 1) if event["tid"] == start["tid"] and
             event["ts"] <= start["ts"] < check_trace.end_of(event))
    a["dur"] += b["args"]["end_us"] - a["ts"]
    a["args"]["end_us"] = check_trace.end_of(a)


FAULTS = {
    "slices overlap": (overlap, "of its stream"),
    "an early slice is not told": (lambda t: first(t)["args"].update(start_us=-1), "below 0"),
    "a slice is gone": (lambda t: drop(t, first(t)), "in one of the two processes only"),
    "a node is gone": (lambda t: rename(t, 1, "relu1", "conv1"), "node relu1 (Relu) is in no slice of pid 1"),
    "a node is nobody's": (lambda t: rename(t, 2, "relu1", "nobody"), "computes nobody"),
    "a node is told twice": (lambda t: t["otherData"]["nodes_without_kernel"].append(
        {"node": "conv1", "op": "Conv", "why": "?"}), "is told to have no kernel"),
    "a node's operator is another": (lambda t: t["otherData"]["nodes_without_kernel"][0].update(op="Flatten"),
                                     "in the graph it is Concat"),
    "an arg is gone": (lambda t: first(t)["args"].pop("candidate"), "no candidate"),
    "an arg is text": (lambda t: first(t)["args"].update(workspace_bytes="8"), "workspace_bytes is '8'"),
    "an arg is unknown": (lambda t: first(t)["args"].update(candidate=None), "candidate is None"),
    "an arg is a flag": (lambda t: first(t)["args"].update(position=True), "position is True"),
    "half a kernel": (lambda t: first(t)["args"].update(blocks_per_sm=3), "some are not"),
    "another candidate": (lambda t: first(t)["args"].update(candidate="x"), "was planned as"),
    "another stream": (lambda t: first(t)["args"].update(stream=7), "is of stream 7"),
    "another end": (lambda t: first(t)["args"].update(end_us=1e6), "its args say 1000000"),
    "no duration": (lambda t: first(t).update(dur=0), "lasts 0 us"),
    "no time": (lambda t: first(t).pop("ts"), "ts is None"),
    "no name": (lambda t: first(t).update(name=""), "no name"),
    "an unknown event": (lambda t: first(t).update(ph="Z"), "an event of kind 'Z'"),
    "a flow without its end": (lambda t: drop(t, last(t, "f")), "wanted one start and one end"),
    "a flow without its start": (lambda t: drop(t, first(t, "s")), "wanted one start and one end"),
    "a flow out of its slice": (lambda t: last(t, "f").update(ts=1e7), "is in no slice"),
    "a flow to the next slice": (lambda t: last(t, "f").pop("bp"), "bound to the next slice"),
    "a flow points back": (lambda t: (last(t, "s").update(ph="f", bp="e", x=1),
                                      next(e for e in reversed(t["traceEvents"]) if e["ph"] == "f" and e["pid"] == 1 and
                                           "x" not in e).update(ph="s")), "before"),
    "a dependency does not hold": (too_soon, "which it depends on, has ended"),
    "a counter below 0": (lambda t: of_arena(t)[0]["args"].update(buffers=-1), "a value below 0"),
    "a counter does not end at 0": (lambda t: of_arena(t)[-1]["args"].update(buffers=1), "wanted 0"),
    "a counter above the arena": (lambda t: of_arena(t)[0]["args"].update(buffers=10 ** 9), "bytes of an arena"),
    "a counter's time comes twice": (lambda t: of_arena(t)[1].update(ts=of_arena(t)[0]["ts"]), "do not rise"),
    "a counter is text": (lambda t: of_arena(t)[0]["args"].update(buffers="1"), "no numbers"),
    "an unknown counter": (lambda t: of_arena(t)[0].update(name="x"), "a counter 'x'"),
    "no counters": (lambda t: [drop(t, event) for event in of_arena(t)], "no counter"),
    "a stream without a name": (lambda t: [drop(t, event) for event in list(t["traceEvents"])
                                           if event["name"] == "thread_name"], "has no name"),
    "a process of another name": (lambda t: first(t, "M")["args"].update(name="planned"), "is called 'planned'"),
    "another span": (lambda t: t["otherData"]["traced"].update(span_us=1), "a span of 1 us"),
    "clocks that differ by too much": (lambda t: t["otherData"]["traced"].update(clock_slack_us=1.5), "wanted 0 to 1"),
    "clocks that are not told": (lambda t: t["otherData"]["traced"].pop("clock_slack_us"), "clocks differ by None"),
    "another run": (lambda t: t["otherData"]["traced"].update(
        run=min(range(5), key=lambda run: t["otherData"]["traced"]["spans_us"][run])), "not the one of median span"),
    "no latency": (lambda t: t["otherData"].update(latency_us=None), "no latency"),
    "no plan": (lambda t: t["otherData"].pop("plan"), "no plan"),
    "another schema": (lambda t: t.update(schema="convsched.trace/2"), "no convsched.trace/1"),
}
# The same of a GPU's trace.
GPU_FAULTS = {
    "a kernel of a launch is gone": (lambda t: drop(t, next(e for e in slices(t, 2) if e["args"]["kernel_index"] == 1)),
                                     "has kernels"),
    "blocks of another grid": (lambda t: first(t, pid=2)["args"].update(blocks=1), "1 blocks of a grid"),
    "threads of another block": (lambda t: first(t, pid=2)["args"].update(threads_per_block=1), "1 threads of a block"),
    "an impossible occupancy": (lambda t: first(t, pid=2)["args"].update(occupancy_percent=101.5), "101.5%"),
    "more than the device": (lambda t: first(t, "C", 2)["args"].update(percent=101), "101%"),
    "measured on a simulated device": (lambda t: first(t, pid=2).update(pid=1), "measured on a simulated device"),
}


class Faults(TraceTest):
    def find(self, good, graph, faults):
        self.assertEqual(check_trace.check(good, graph), [])
        for what, (plant, wanted) in faults.items():
            with self.subTest(what):
                bad = copy.deepcopy(good)
                plant(bad)
                self.assertNotEqual(bad, good)
                self.assertIn(wanted, "\n".join(check_trace.check(bad, graph)))

    def test_of_a_cpu(self):
        trace, _ = self.trace(self.chain(), "--device", "cpu", "--policy", "sequential")
        self.find(trace, json.loads(pathlib.Path(self.chain()).read_text()), FAULTS)

    def chain(self):
        """The tiny graph and a convolution behind it, so that there are dependencies."""
        def change(graph):
            graph["nodes"].append({"name": "conv3", "op": "Conv", "inputs": ["cat"],
                                   "attrs": {"out_channels": 4, "kernel_shape": [1, 1], "bias": True}})
            graph["outputs"] = ["conv3"]
        return self.model(change)

    def test_of_a_gpu(self):
        model = ROOT / "models" / "googlenet.json"
        trace, _ = self.trace(model, "--dtype", "f16", "--device", f"sim:{PROFILES / 'h100-f16-b1.jsonl.gz'}")
        self.find(trace, json.loads(model.read_text()), GPU_FAULTS)

    def test_the_command(self):
        model = self.model()
        trace, _ = self.trace(model, "--device", "cpu")
        tool = [sys.executable, ROOT / "tools" / "check_trace.py"]
        done = subprocess.run([*tool, self.folder / "t.json", "--graph", model], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("6 slices" if len(slices(trace, 1)) == 3 else "slices", done.stdout)
        overlap_of = copy.deepcopy(trace)
        drop(overlap_of, first(overlap_of))
        bad = self.file("bad.json", overlap_of)
        done = subprocess.run([*tool, bad], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("in one of the two processes only", done.stdout)
        for broken in ("", "[]", "{}", '{"schema": "convsched.trace/1"}'):
            done = subprocess.run([*tool, self.file("bad.json", broken)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (1, ""))


if __name__ == "__main__":
    harness.main()
