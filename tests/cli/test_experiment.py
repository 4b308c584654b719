"""`convsched experiment`: cross products on a simulated GPU (quick) and on the CPU, resumed, refused, told as a page."""
import copy
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

import harness
from harness import BAD_INPUT, FAILURE, INTERRUPTED, OK, ROOT, USAGE, WRONG, CommandTest

PROFILE = ROOT / "tests/data/profiles/h100-f16-b1.jsonl.gz"
SPEC = {
    "schema": "convsched.experiment/1", "name": "small", "models": [str(ROOT / "models/googlenet.json")],
    "dtypes": ["f16"], "batches": [1], "policies": ["sequential", "streams", "coselect"],
    "families": [{"name": "all"}, {"name": "legacy", "allow": ["cudnn.legacy*"]}, {"name": "ours", "ban": ["cudnn*"]}],
    "workspace_limits": ["0", "16M", 268435456], "streams": [None, 1, 2]}
CELLS = 27
TINY = {"schema": "convsched.experiment/1", "name": "tiny", "models": ["tiny.json"], "dtypes": ["f32"], "batches": [1],
        "policies": ["streams"], "samples": 5, "search_seconds": 0}


class ExperimentTest(CommandTest):
    def spec(self, change=None, of=SPEC, name="spec.json", **members):
        spec = copy.deepcopy(of)
        spec.update(members)
        if change:
            change(spec)
        return self.file(name, spec)

    def sim(self, *args, spec=None, output="out.jsonl", **more):
        return self.execute("experiment", spec or self.spec(), "--device", f"sim:{PROFILE}", "--output", output, *args,
                            **more)

    def lines(self, name="out.jsonl"):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def cells(self, name="out.jsonl"):
        return [line for line in self.lines(name) if line["schema"] == "convsched.experiment-cell/1"]

    def keys(self, name="out.jsonl"):
        return [line["key"] for line in self.cells(name)]

    def assert_complete(self, n=CELLS):
        keys = self.keys()
        self.assertEqual(len(keys), n)
        self.assertEqual(len(set(keys)), n, "a cell is there twice")
        self.assertEqual([line["schema"] for line in self.lines()].count("convsched.experiment-head/1"), 1)


@unittest.skipIf(harness.SHORT, "long under a sanitizer")
class CrossProduct(ExperimentTest):
    cold = True

    def test_every_cell_once(self):
        self.accepted(self.sim("--quiet"))
        self.assert_predicted_alone(*self.accepted(self.sim("--page", "page.html")))
        self.assert_complete()
        found = {(c["cell"]["family"], c["cell"]["workspace_limit"], c["cell"]["streams"]) for c in self.cells()}
        self.assertEqual(found, {(f, w, s) for f in ("all", "legacy", "ours") for w in (0, 16 << 20, 256 << 20)
                                 for s in (None, 1, 2)})
        for cell in self.cells():
            self.assertEqual(cell["outcome"], "predicted")
            self.assertEqual([p["name"] for p in cell["run"]["policies"]], SPEC["policies"])
            self.assertTrue(all(p["predicted"] for p in cell["run"]["policies"]))
            used = max(p["streams"] for p in cell["run"]["policies"])
            self.assertLessEqual(used, cell["cell"]["streams"] or 99)

    def assert_predicted_alone(self, out, err):
        """Nothing of a simulated device is told as measured."""
        page = (self.folder / "page.html").read_text()
        self.assertIn(f"0 predicted, {CELLS} there before", err)
        self.assertIn("predicted us", out)
        self.assertIn(">predicted us<", page)
        body = page[page.index("<body"):page.index("Environment</h2>")]  # an identity of the device is behind it
        for text in (out, err, re.sub(r"<script.*?</script>", "", body, flags=re.S)):
            self.assertNotRegex(text, "(?i)measured|median|sampled|interval")

    def test_families_restrict_convolutions(self):
        self.accepted(self.sim("--quiet", "--only", "workspace_limit=256M,streams=default"))
        for cell in self.cells():
            ids = {t["candidate"] for p in cell["run"]["policies"] for t in p["tasks"] if t["op"] == "Conv"}
            family = cell["cell"]["family"]
            self.assertTrue(ids)
            if family == "legacy":
                self.assertTrue(all(i.startswith("cudnn.legacy") for i in ids), ids)
            elif family == "ours":
                self.assertFalse([i for i in ids if i.startswith("cudnn")], ids)
            else:
                self.assertTrue([i for i in ids if i.startswith("cudnn.graph")], ids)

    def test_excluded(self):
        spec = self.spec(exclude=[{"families": ["ours"]}, {"policies": ["coselect"], "streams": [1, 2]},
                                  {"policies": SPEC["policies"], "workspace_limits": [0]}])
        self.accepted(self.sim("--quiet", spec=spec))
        self.assert_complete(2 * 2 * 3)
        for cell in self.cells():
            self.assertIn(cell["cell"]["family"], ("all", "legacy"))
            policies = [p["name"] for p in cell["run"]["policies"]]
            self.assertEqual("coselect" in policies, cell["cell"]["streams"] is None)

    def test_only(self):
        self.accepted(self.sim("--quiet", "--only", "family=le*,streams=1", "--only", "workspace_limit=0,family=all"))
        self.assertEqual(len(self.keys()), 3 + 3)
        self.accepted(self.sim("--quiet"))
        self.assert_complete()

    def test_only_that_means_nothing(self):
        self.refused(self.sim("--only", "batch=7"), USAGE, "batch=7", "27 cells")
        self.refused(self.sim("--only", "color=red"), USAGE, "color", "workspace_limit")
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_dry_run_lists_and_measures_nothing(self):
        out, _ = self.accepted(self.sim("--dry-run", spec=self.spec(search_seconds=3)))
        self.assertEqual(out.count("to do"), CELLS + 1)
        self.assertIn("27 of 27 cells, 27 of them to do; nothing is searched or sampled on a simulated device.", out)
        told, _ = self.accepted(self.execute("experiment", self.spec(search_seconds=3), "--dry-run", "--device", "cpu"))
        self.assertIn(f"27 of 27 cells, 27 of them to do; searches take {3 * CELLS} s", told)
        self.assertFalse((self.folder / "out.jsonl").exists())
        self.sim("--quiet", "--only", "family=all", spec=self.spec(search_seconds=3))
        out, _ = self.accepted(self.sim("--dry-run", spec=self.spec(search_seconds=3)))
        self.assertIn("27 of 27 cells, 18 of them to do; about", out)

    def test_default_output(self):
        self.accepted(self.execute("experiment", self.spec(streams=[None], workspace_limits=["256M"]), "--quiet",
                                   "--device", f"sim:{PROFILE}"))
        self.assertEqual(len(self.keys("small.jsonl")), 3)

    def test_shipped_specifications(self):
        found = {path.name: self.accepted(self.execute("experiment", path, "--dry-run"))[0]
                 for path in (ROOT / "experiments").glob("*.json")}
        self.assertEqual(set(found), {"spaa2020.json", "policies_batch.json", "latency_workspace.json"})


class Resume(ExperimentTest):
    cold = True

    def start_until(self, lines):
        """Starts and waits for so many lines."""
        process = self.start("experiment", self.spec(), "--device", f"sim:{PROFILE}", "--output", "out.jsonl")
        path, end = self.folder / "out.jsonl", time.monotonic() + 60
        while time.monotonic() < end and (not path.exists() or path.read_bytes().count(b"\n") < lines):
            time.sleep(0.002)
        return process

    def test_after_a_kill(self):
        for lines in (2, 9):
            process = self.start_until(lines)
            process.kill()
            process.communicate()
            self.assertEqual(process.returncode, -signal.SIGKILL, "it was done before it was killed")
            self.assertLess(len(self.keys()), CELLS)
        before = self.keys()
        _, err = self.accepted(self.sim())
        self.assertIn(f"{CELLS - len(before)} predicted, {len(before)} there before", err)
        self.assert_complete()
        self.assertEqual(self.keys()[:len(before)], before)

    def test_interrupted(self):
        process = self.start_until(4)
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertTrue(3 <= len(self.keys()) < CELLS)
        self.accepted(self.sim("--quiet"))
        self.assert_complete()

    def test_torn_line(self):
        self.accepted(self.sim("--quiet", "--only", "family=all"))
        path = self.folder / "out.jsonl"
        whole = path.read_bytes()
        last = whole.splitlines()[-1]
        path.write_bytes(whole[:-len(last) // 2])
        _, err = self.accepted(self.execute("experiment", "--from", "out.jsonl", "--page", "a.html"))
        self.assertIn("convsched: wrote a.html\n", err)
        self.assertIn("was cut off", (self.folder / "a.html").read_text())
        self.accepted(self.sim("--quiet"))
        self.assert_complete()

    def test_damaged_line_in_the_middle(self):
        self.accepted(self.sim("--quiet", "--only", "family=all"))
        path = self.folder / "out.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:2], b'{"key":\n', *lines[2:]]))
        self.refused(self.sim("--quiet"), BAD_INPUT, "out.jsonl:3")

    def test_time_limit(self):
        _, err = self.accepted(self.sim("--time-limit", "0"))
        self.assertIn("0 predicted, 0 there before, 27 left", err)
        self.assertEqual(self.keys(), [])
        self.accepted(self.sim("--quiet"))
        self.assert_complete()

    def test_changed_specification(self):
        self.accepted(self.sim("--quiet", "--only", "family=all"))
        before = (self.folder / "out.jsonl").read_bytes()
        changed = self.spec(batches=[1, 2])
        self.refused(self.sim(spec=changed), BAD_INPUT, "out.jsonl", "another specification", "--output")
        self.assertEqual((self.folder / "out.jsonl").read_bytes(), before)

    def test_changed_model(self):
        model = self.file("g.json", (ROOT / "models/googlenet.json").read_bytes())
        spec = self.spec(models=["g.json"], streams=[1], workspace_limits=["256M"])
        self.accepted(self.sim("--quiet", spec=spec))
        document = json.loads((self.folder / model).read_text())
        document["nodes"][0]["attrs"]["bias"] = False
        self.file("g.json", document)
        self.refused(self.sim(spec=spec), BAD_INPUT, "of other models")

    def test_another_device(self):
        self.accepted(self.sim("--quiet", "--only", "family=all"))
        line = self.lines()[0]
        line["device"]["identity"] += ";other"
        rest = (self.folder / "out.jsonl").read_text().split("\n", 1)[1]
        self.file("out.jsonl", json.dumps(line) + "\n" + rest)
        self.refused(self.sim(), BAD_INPUT, "another device", ";other")

    def test_file_of_something_else(self):
        self.file("out.jsonl", '{"schema": "convsched.run/1"}\n')
        self.refused(self.sim(), BAD_INPUT, "out.jsonl", "something else")

    def test_file_of_something_else_in_one_line(self):
        """Of a file without a newline all is a line without an end: it stays."""
        for content in ('{"my": "data"}', "x", '{"schema":"convsched.experiment-cell/1","key":"', "\n{}", "\n\nx"):
            self.file("out.jsonl", content)
            self.refused(self.sim(), BAD_INPUT, "out.jsonl", "something else")
            self.assertEqual((self.folder / "out.jsonl").read_text(), content)

    def test_torn_first_line(self):
        self.accepted(self.sim("--quiet", "--only", "family=all"))
        first = (self.folder / "out.jsonl").read_bytes().splitlines()[0]
        for length in (0, 1, 20, 60, len(first)):
            (self.folder / "out.jsonl").write_bytes(first[:length])
            self.accepted(self.sim("--quiet", "--only", "family=all,streams=1"))
            self.assertEqual(len(self.keys()), 3)

    def test_many_begin_at_once(self):
        """One gets the file; the others leave it as it is."""
        spec = self.spec(streams=[1], families=[{"name": "all"}])
        for _ in range(8):
            begun = [self.start("experiment", spec, "--device", f"sim:{PROFILE}", "--output", "out.jsonl", "--quiet")
                     for _ in range(6)]
            for process in begun:
                process.communicate()
            codes = [process.returncode for process in begun]
            self.assertIn(OK, codes)
            self.assertEqual(set(codes) - {OK, USAGE}, set())
            self.assertEqual(len(self.keys()), 3)
            (self.folder / "out.jsonl").unlink()

    def test_names_that_are_not_utf8(self):
        name = os.fsdecode(b"r\xe4cords.jsonl")
        self.accepted(self.sim("--quiet", "--only", "family=all,streams=1", output=name))
        self.assertIn("--output r?cords.jsonl", self.lines(name)[0]["command"])

    def test_two_at_a_time(self):
        process = self.start_until(2)
        self.refused(self.sim(), USAGE, "out.jsonl", "another process")
        process.kill()
        process.communicate()


class Refused(ExperimentTest):
    cold = True

    def wrong(self, change, *fragments, code=BAD_INPUT):
        found = self.sim(spec=self.spec(change))
        self.refused(found, code, "spec.json", *fragments)
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_hostile_specifications(self):
        def put(**members):
            return lambda spec: spec.update(members)
        for change, *fragments in (
                (put(extra=1), "$: unknown key \"extra\""),
                (put(schema="convsched.experiment/2"), "$.schema", "convsched.experiment/1"),
                (lambda s: s.pop("models"), "$: key \"models\" is missing"),
                (put(name="a/b"), "$.name", "a/b"), (put(name=7), "$.name", "an integer"), (put(title=[]), "$.title"),
                (put(models=[]), "$.models", "found 0 values"), (put(models="x"), "$.models", "a string", "an array"),
                (put(models=["a/m.json", "b/m.json"]), "$.models[1]", "second model called m"),
                (put(models=[""]), "$.models[0]"),
                (put(batches=[0]), "$.batches[0]", "found 0"), (put(batches=[1.5]), "$.batches[0]", "1.5"),
                (put(batches=[2, 2]), "$.batches[1]", "twice"), (put(batches=[True]), "$.batches[0]"),
                (put(batches=[10 ** 30]), ), (put(dtypes=["f64"]), "$.dtypes[0]", "f64"),
                (put(policies=["magic"]), "$.policies[0]", "magic"), (put(policies=[]), "$.policies"),
                (put(workspace_limits=["12X"]), "$.workspace_limits[0]"), (put(workspace_limits=[-1]), "$.workspace_limits"),
                (put(streams=[0]), "$.streams[0]"), (put(streams=[2000]), "$.streams[0]"),
                (put(partitions=["32"]), "$.partitions[0]"), (put(partitions=["32,"]), "$.partitions[0]"),
                (put(partitions=["32,x"]), "$.partitions[0]"), (put(families={}), "$.families"),
                (put(families=[]), "$.families"), (put(families=[{"name": "a"}, {"name": "a"}]), "$.families[1].name"),
                (put(families=[{"name": "a", "deny": []}]), "$.families[0]", "deny"),
                (put(families=[{"name": "a", "ban": []}]), "$.families[0].ban"),
                (put(families=[{"name": "a", "ban": [7]}]), "$.families[0].ban[0]"),
                (put(families=[{"name": "a", "ban": [f"b{i}" for i in range(65)]}]), "$.families[0].ban", "65"),
                (put(samples=0), "$.samples"), (put(samples=10 ** 6), "$.samples"), (put(samples="5"), "$.samples"),
                (put(search_seconds=-1), "$.search_seconds"), (put(memory_limit="much"), "$.memory_limit"),
                (put(seed=-1), "$.seed"), (put(verify="maybe"), "$.verify", "maybe"),
                (put(profile=7), "$.profile"), (put(profile={"corun": 1}), "$.profile.corun"),
                (put(tables=[{"table": "pie"}]), "$.tables[0].table", "pie"), (put(tables=[{}]), "$.tables[0]"),
                (put(tables=[{"table": "workspace", "nodes": [3]}]), "$.tables[0].nodes"),
                (put(exclude={}), "$.exclude"), (put(exclude=[{}]), "$.exclude[0]"),
                (put(exclude=[{"colors": [1]}]), "$.exclude[0]", "colors"),
                (put(exclude=[{"families": ["none"]}]), "$.exclude[0].families[0]"),
                (put(exclude=[{"batches": [1]}]), "$.exclude", "nothing is left")):
            with self.subTest(str(fragments)):
                self.wrong(change, *fragments)

    def test_model_that_is_not_there_or_wrong(self):
        self.refused(self.sim(spec=self.spec(models=["none.json"])), FAILURE, "none.json")
        self.file("bad.json", "{}")
        self.refused(self.sim(spec=self.spec(models=["bad.json"])), BAD_INPUT, "bad.json")
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_far_too_many_cells(self):
        self.wrong(lambda s: s.update(batches=list(range(1, 1001)), workspace_limits=list(range(1000)),
                                      families=[{"name": str(i)} for i in range(1000)], streams=[None]),
                   "1000000000 cells", "1000 batches", "1000 families", "at most 10000")

    def test_no_json(self):
        self.file("spec.json", "{")
        self.refused(self.sim(spec="spec.json"), BAD_INPUT, "spec.json:1:")
        self.file("spec.json", '{"name": "a", "name": "b"}')
        self.refused(self.sim(spec="spec.json"), BAD_INPUT, "duplicate")

    def test_output_that_cannot_be_written_fails_first(self):
        self.file("g.json", (ROOT / "models/googlenet.json").read_bytes())
        for args in (("--output", "none/out.jsonl"), ("--output", "."), ("--output", "/dev/full"),
                     ("--output", "out.jsonl", "--page", "none/page.html"), ("--output", "spec.json"),
                     ("--output", "out.jsonl", "--page", "spec.json"), ("--output", "out.jsonl", "--page", "out.jsonl"),
                     ("--output", "g.json"), ("--output", "out.jsonl", "--page", "g.json")):
            with self.subTest(args):
                code, out, err = self.execute("experiment", self.spec(models=["g.json"]), "--device", f"sim:{PROFILE}",
                                              *args)
                self.assertIn(code, (FAILURE, USAGE, BAD_INPUT), err)
                self.assertNotIn("cell 1", err)
                self.assertEqual(out, "")
        self.assertEqual(json.loads((self.folder / "spec.json").read_text())["name"], SPEC["name"])
        self.assertEqual(json.loads((self.folder / "g.json").read_text())["name"], "googlenet")

    def test_device_that_is_not_there_leaves_no_file(self):
        self.refused(self.execute("experiment", self.spec(), "--device", "sim:none.jsonl", "--output", "out.jsonl"), FAILURE)
        self.assertFalse((self.folder / "out.jsonl").exists())

    def test_usage(self):
        self.refused(self.execute("experiment"), USAGE, "SPEC.json")
        self.refused(self.execute("experiment", self.spec(), "--from", "out.jsonl"), USAGE, "--from")
        self.refused(self.execute("experiment", "--from", "none.jsonl"), FAILURE, "none.jsonl")

    def test_help(self):
        out, _ = self.accepted(self.execute("experiment", "--help"))
        for word in ("--output", "--page", "--from", "--only", "--dry-run", "--time-limit", "policies_batch.json"):
            self.assertIn(word, out)


class Failures(ExperimentTest):
    """Cells that cannot be measured are told with the reason and do not end the experiment."""
    cold = True

    def test_no_such_candidates(self):
        spec = self.spec(families=[{"name": "none", "allow": ["nothing*"]}, {"name": "all"}], streams=[1],
                         workspace_limits=["256M"])
        code, out, err = self.sim(spec=spec)
        self.assertEqual(code, WRONG)
        failed, good = self.cells()
        self.assertEqual((failed["outcome"], failed["code"], failed["run"]), ("failed", "NOT_FOUND", None))
        self.assertIn("not among those allowed", failed["reason"])
        self.assertEqual(good["outcome"], "predicted")
        self.assertIn(failed["reason"], out)
        self.assertIn(failed["reason"], err)
        code, _, err = self.sim(spec=spec)
        self.assertEqual(code, WRONG, "what failed before counts")
        self.assertIn("0 predicted, 2 there before, 1 failed", err)
        code, _, err = self.sim("--retry", spec=spec)
        self.assertIn("1 predicted, 1 there before, 1 failed", err)
        self.assertEqual(len(self.cells()), 3)
        self.execute("experiment", "--from", "out.jsonl", "--page", "p.html")
        page = (self.folder / "p.html").read_text()
        self.assertIn("What failed", page)
        self.assertIn(failed["reason"].replace("\"", "&quot;"), page)
        self.assertIn("2 of 2", page)

    def test_memory_limit(self):
        code, _, _ = self.sim("--quiet", spec=self.spec(memory_limit="1k", streams=[1], workspace_limits=["256M"]))
        self.assertEqual(code, WRONG)
        self.assertEqual({c["outcome"] for c in self.cells()}, {"failed"})


@unittest.skipIf(harness.SHORT, "long under a sanitizer")
class Told(ExperimentTest):
    cold = True

    def page(self, *args, spec=None):
        self.accepted(self.sim("--quiet", "--page", "page.html", *args, spec=spec))
        return (self.folder / "page.html").read_text()

    def figures(self, page):
        """aria-label → {(series, x): text of y} of every figure's points."""
        found = {}
        for svg in re.findall(r"<svg.*?</svg>", page, re.S):
            root = xml.etree.ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", svg))
            points = {}
            for mark in root.iter("g"):
                title = mark.find("title")
                shape = [e for e in mark if e.get("class", "").startswith("point")]
                if title is None or not shape:
                    continue
                series, rest = title.text.split("\n")[:2]
                x, y = rest.split(": ", 1)
                points[series, x] = y
            found[root.get("aria-label")] = points
        return found

    def test_a_point_for_every_cell(self):
        figures = self.figures(self.page())
        latencies = {label: points for label, points in figures.items() if label.startswith("Latency against workspace")}
        by_policy = {label: points for label, points in latencies.items() if "family" in label}
        self.assertEqual(len(by_policy), 9)  # families × streams
        self.assertEqual(sum(map(len, by_policy.values())), CELLS * 3)
        for cell in self.cells():
            if cell["cell"]["streams"] is not None:
                continue
            label = next(l for l in by_policy if f"family {cell['cell']['family']}, streams default" in l)
            limit = {0: "0 B", 16 << 20: "16 MiB", 256 << 20: "256 MiB"}[cell["cell"]["workspace_limit"]]
            for policy in cell["run"]["policies"]:
                told = next(y for (series, x), y in by_policy[label].items()
                            if series == policy["name"] and x == f"workspace limit {limit}")
                self.assertEqual(self.microseconds(told), self.microseconds(self.shown(policy["predicted_us"])))

    @staticmethod
    def shown(us):
        return f"{us:.3g} µs" if us < 1000 else f"{us / 1000:.3g} ms"

    @staticmethod
    def microseconds(text):
        number, unit = text.split()
        return float(f"{float(number) * {'µs': 1, 'ms': 1000}[unit]:.3g}")

    def test_numbers_of_the_table(self):
        self.sim("--quiet")
        out, _ = self.accepted(self.execute("experiment", "--from", "out.jsonl", "--format", "csv"))
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(len(rows), CELLS * 3)
        wanted = {(c["cell"]["family"], str(c["cell"]["workspace_limit"]), str(c["cell"]["streams"] or ""), p["name"]): p
                  for c in self.cells() for p in c["run"]["policies"]}
        for row in rows:
            policy = wanted.pop((row["family"], row["workspace_limit"], row["streams"], row["policy"]))
            self.assertAlmostEqual(float(row["us"]), policy["predicted_us"], delta=1e-6 * policy["predicted_us"])
            self.assertAlmostEqual(float(row["gain"]), policy["speedup_vs_sequential"], places=5)
            self.assertEqual(int(float(row["arena_bytes"])), policy["arena_bytes"])
            self.assertEqual(row["outcome"], "predicted")
        self.assertEqual(wanted, {})

    def split_cells(self, splits):
        """An experiment on parts of the device, whose plans by coselect have these splits as records tell them."""
        spec = self.spec(policies=["coselect"], partitions=["none", "16,116"], streams=[4], workspace_limits=["256M"],
                         families=[{"name": "all"}])
        self.accepted(self.sim("--quiet", spec=spec))
        lines = self.lines()
        cells = [line for line in lines if line["schema"] == "convsched.experiment-cell/1"]
        for cell, split in zip(cells, splits, strict=True):
            (coselect,) = [policy for policy in cell["run"]["policies"] if policy["name"] == "coselect"]
            self.assertIn("split", coselect)
            if split == "older":
                coselect.pop("split")
            else:
                coselect["split"] = split
        self.file("split.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def told(self, *args):
        return self.accepted(self.execute("experiment", "--from", "split.jsonl", *args))[0]

    def test_splits(self):
        """Which streams are on which part of the SMs, where some plan has parts or they were asked for."""
        self.split_cells([None, {"parts": [16, 116], "streams": [0, 1, None, 1]}])
        shown = "16 SMs: 0; 116 SMs: 1, 3; all: 2"
        rows = [re.split(r" *\| *", line)[1:-1] for line in self.told("--format", "md").splitlines() if line.startswith("|")]
        at, policy = rows[0].index("split"), rows[0].index("policy")
        self.assertEqual([(row[policy], row[at]) for row in rows[2:]],
                         [("sequential", "none"), ("coselect", "none"), ("sequential", "none"), ("coselect", shown)])
        rows = list(csv.DictReader(io.StringIO(self.told("--format", "csv"))))
        self.assertEqual([(row["used_partition"], row["stream_parts"]) for row in rows],
                         [("none", ""), ("none", ""), ("none", ""), ("16,116", "0,1,-,1")])
        self.told("--page", "p.html")
        self.assertIn(shown, (self.folder / "p.html").read_text())
        self.split_cells([None, "older"])  # not told is not none
        rows = list(csv.DictReader(io.StringIO(self.told("--format", "csv"))))
        self.assertEqual([row["used_partition"] for row in rows], ["none"] * 3 + [""])

    def test_no_splits(self):
        self.sim("--quiet", spec=self.spec(streams=[1, 2], workspace_limits=["256M"], families=[{"name": "all"}]))
        out, _ = self.accepted(self.execute("experiment", "--from", "out.jsonl"))
        self.assertIn("streams", out)
        self.assertNotIn("split", out)

    def test_markdown_and_page_have_the_same_cells(self):
        page = self.page()
        out, _ = self.accepted(self.execute("experiment", "--from", "out.jsonl", "--format", "md"))
        rows = [re.findall(r"[^|]+", line) for line in out.splitlines() if line.startswith("| googlenet")]
        self.assertEqual(len(rows), CELLS * 3)
        body = page[page.index("<h2>All cells" if "<h2>All cells" in page else "All cells</h2>"):]
        cells = re.findall(r"<tr>(.*?)</tr>", body[body.index("<tbody>"):body.index("</tbody>")], re.S)
        self.assertEqual([[re.sub("<.*?>", "", c) for c in re.findall(r"<td.*?</td>", row)] for row in cells],
                         [[cell.strip() for cell in row] for row in rows])

    def test_page_reads_nothing_else(self):
        page = self.page()
        self.assertIn("predicted by the SM model", page)
        self.assertIsNone(re.search(r"(src|href)=\"(?!#|data:)", page))
        self.assertIn("NVIDIA H100", page)
        self.assertIn("convsched.experiment/1", page)

    def test_tables_of_the_profile(self):
        tables = [{"table": "resources", "nodes": ["inception_3a/3x3"], "paper": True}, {"table": "complementary"},
                  {"table": "workspace", "nodes": ["no_such_node"]}]
        page = self.page(spec=self.spec(tables=tables, families=[{"name": "all"}], streams=[1], workspace_limits=["256M"]))
        (profile,) = [l for l in self.lines() if l["schema"] == "convsched.experiment-profile/1"]
        self.assertEqual([t["table"] for t in profile["tables"]], ["resources", "complementary", "workspace"])
        self.assertIn("no_such_node", profile["tables"][2]["failed"])
        self.assertIn("fft2d_c2r_32x32", page)
        self.assertIn("no_such_node", page)

    def test_more_families_than_a_figure_has_lines(self):
        families = [{"name": f"f{i}"} for i in range(9)]
        page = self.page(spec=self.spec(families=families, streams=[1, 2], workspace_limits=["256M"], policies=["streams"]))
        self.assertIn("Figures by family: 9 of them", page)
        self.assertIn("family f8", page)

    def test_hostile_names_are_escaped(self):
        nasty = "<script>alert(1)</script>"
        page = self.page(spec=self.spec(title=nasty, families=[{"name": nasty}], streams=[1, 2], workspace_limits=["256M"]))
        self.assertNotIn(nasty, page)
        self.assertIn("&lt;script&gt;alert(1)", page)


class Measured(ExperimentTest):
    """On the CPU, with numbers that are checked."""

    def test_cells_are_what_run_records(self):
        self.model()
        spec = self.spec(of=TINY, streams=[None, 2])
        out, _ = self.accepted(self.execute("experiment", spec, "--device", "cpu", "--page", "p.html", "--quiet"))
        cells = self.cells("tiny.jsonl")
        self.assertEqual([c["outcome"] for c in cells], ["measured"] * 2)
        for cell in cells:
            record = cell["run"]
            self.assertEqual((record["schema"], record["model"]), ("convsched.run/1", "tiny"))
            self.assertTrue(record["verification"]["passed"])
            self.assertEqual([p["name"] for p in record["policies"]], ["sequential", "streams"])
            for policy in record["policies"]:
                self.assertEqual(len(policy["latency_us"]["samples"]), 5)
                self.assertIn(f"{policy['latency_us']['median']:.1f}", out)
        self.assertIn("95% interval", (self.folder / "p.html").read_text())
        self.assertEqual(out.count("measured"), 4)

    def test_partition_that_the_device_cannot_have(self):
        self.model()
        spec = self.spec(of=TINY, policies=["coselect"], partitions=["none", "1,1"])
        code, out, _ = self.execute("experiment", spec, "--device", "cpu", "--quiet")
        self.assertEqual(code, WRONG)
        outcomes = {c["cell"]["partition"]: c for c in self.cells("tiny.jsonl")}
        self.assertEqual((outcomes["none"]["outcome"], outcomes["1,1"]["outcome"]), ("measured", "failed"))
        self.assertIn("part", outcomes["1,1"]["reason"])

    def test_profile_step(self):
        self.model()
        spec = self.spec(of=TINY, profile={"corun": True}, tables=[{"table": "workspace"}])
        self.accepted(self.execute("experiment", spec, "--device", "cpu", "--quiet"))
        (profile,) = [l for l in self.lines("tiny.jsonl") if l["schema"] == "convsched.experiment-profile/1"]
        self.assertEqual(profile["report"]["schema"], "convsched.profile-report/1")
        self.assertIn("coruns", profile["report"])
        self.assertEqual({row["node"] for row in profile["tables"][0]["rows"]}, {"conv1", "conv2"})


class Patterns(CommandTest):
    """--ban and --allow of candidates by * and ?."""
    cold = True

    def plan(self, *args):
        return self.execute("plan", ROOT / "models/googlenet.json", "--dtype", "f16", "--device", f"sim:{PROFILE}", "--json",
                            "plan.json", *args)

    def candidates(self, *args):
        self.accepted(self.plan(*args))
        return {t["candidate"]["id"] for t in json.loads((self.folder / "plan.json").read_text())["tasks"]}

    def test_ban(self):
        self.assertTrue([i for i in self.candidates() if i.startswith("cudnn.graph")])
        self.assertFalse([i for i in self.candidates("--ban", "cudnn.graph*") if i.startswith("cudnn.graph")])
        self.refused(self.plan("--ban", "cudnn.grap"), BAD_INPUT, "cudnn.grap")
        self.refused(self.plan("--ban", "*"), BAD_INPUT, "banned or not among those allowed")

    def test_allow(self):
        ids = self.candidates("--allow", "cudnn.legacy*")
        self.assertFalse([i for i in ids if i.startswith("cudnn.graph")])
        self.assertTrue([i for i in ids if i.startswith("cuda.max_pool")], "other operations are not restricted")
        self.refused(self.plan("--allow", "nothing"), BAD_INPUT, "not among those allowed")
        self.refused(self.plan("--allow", "cudnn.legacy*", "--algorithm", "conv2/3x3=cuda.conv.v1"), BAD_INPUT,
                     "not among those allowed")


@unittest.skipIf(harness.SHORT, "long under a sanitizer")
class Reproduction(ExperimentTest):
    """bench/spaa_page.py, of what the recorded profile of an H100 tells."""
    cold = True

    def record(self):
        profile = ROOT / "tests/data/profiles/h100-tf32-b32.jsonl.gz"
        self.accepted(self.execute("experiment", ROOT / "experiments/spaa2020.json", "--device", f"sim:{profile}", "--only",
                                   "dtype=tf32", "--output", "spaa.jsonl", "--quiet"))

    def claims(self, *files):
        done = subprocess.run([sys.executable, ROOT / "bench/spaa_page.py", *files], capture_output=True, text=True,
                              timeout=60, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        rows = [[c.strip() for c in line.strip("|").split("|")] for line in done.stdout.splitlines()]
        return {row[0][:1]: (row[-2], row[-1].strip("*")) for row in rows if re.match(r"\d\. ", row[0]) and len(row) > 3}

    def test_verdicts_follow_the_numbers(self):
        self.record()
        claims = self.claims("spaa.jsonl")
        self.assertEqual(sorted(claims), list("1234567"))
        lines = self.lines("spaa.jsonl")
        profile = next(l for l in lines if l["schema"] == "convsched.experiment-profile/1")
        sets = {row["set"]: row for row in profile["tables"][3]["rows"]}
        members = [row["set"] for row in profile["tables"][3]["rows"]]
        pairs = sum(members.count(s) == 2 for s in sets)
        self.assertIn(f"{pairs} pairs, {len(sets) - pairs} larger sets", claims["6"][0])
        self.assertEqual(claims["6"][1], "holds" if pairs >= 27 else "holds in part")
        self.assertIn(f"up to {max(row['gain'] for row in sets.values()):.2f}×", claims["7"][0])
        self.assertEqual(claims["7"][1], "does not hold")

    def test_other_numbers_other_verdicts(self):
        self.record()
        lines = self.lines("spaa.jsonl")
        for line in lines:
            if line["schema"] == "convsched.experiment-profile/1":
                line["report"] = {"coruns": {"list": [{"serial_us": us, "fastest_alone_us": 10.0} for us in (10, 12.5, 40)]}}
                line["tables"][3]["rows"] = []
                for row in line["tables"][1]["rows"]:
                    row.update({key: 20 for key in ("registers_pct", "shared_pct", "threads_pct", "blocks_pct")
                                if row[key] is not None})
            for policy in (line.get("run") or {}).get("policies", []):
                if policy["name"] == "streams":
                    policy["predicted_us"] = line["run"]["policies"][0]["predicted_us"]
        self.file("other.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        claims = self.claims("other.jsonl")
        self.assertIn("of 3 sets", claims["5"][0])
        self.assertIn("the median gains 1.25×", claims["5"][0])
        self.assertEqual({n: claims[n][1] for n in "1567"},
                         {"1": "does not hold", "5": "holds", "6": "does not hold", "7": "holds"})


if __name__ == "__main__":
    harness.main()
