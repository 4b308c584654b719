"""bench/throughput.py and the page that bench/throughput_page.py makes of its records, with PyTorch's contenders made up; the
pipeline of bench/convsched.py. What measures needs NumPy and is skipped without it."""
import ast
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import types
import unittest
import xml.etree.ElementTree

import harness
from harness import OK, ROOT, USAGE, WRONG, CommandTest
from page_test import PageTest

sys.path.insert(0, str(ROOT / "bench"))
import peer_list
import throughput_list
import throughput_race
import throughput_ratio

try:
    import numpy
except ImportError:
    numpy = None


def statistics(value, n):
    """Samples a little up and down; of the same round in the same direction."""
    samples = [value * (1 + 0.001 * (i % 3 - 1)) for i in range(n)]
    return {"median": value, "p10": value * 0.999, "p90": value * 1.001, "variation": 0.001, "samples": samples}


def rate(in_flight, screened, final=None, joules=None, n=50):
    taken = lambda value, windows: {"requests": 9, "images_per_s": statistics(value, windows), "host_images_per_s": value}
    return {"in_flight": in_flight, "screening": taken(screened, 3), "final": final and taken(final, n),
            "joules_per_image": joules and statistics(joules, 5)}


def contender(name, *rates, passed=True, layout=None, **more):
    return {"name": name, "how": "made up", "layout": layout, "first_result_s": 1.25, "rel_l2_float64": 5e-4,
            "verification": {"passed": passed, "slots": 2, "limit_float64": 0.02}, "rates": list(rates), **more}


def record(*contenders, model="googlenet_bn", dtype="f16", batch=1, backend="cuda", left_out=(), no_joules=None):
    return {"schema": "convsched.throughput/1", "model": model, "dtype": dtype, "batch": batch, "commit": "0" * 40,
            "command": "", "device": {"name": f"A {backend}", "backend": backend}, "contenders": list(contenders),
            "left_out": list(left_out), "no_joules": no_joules}


OURS = [contender("sequential", rate(1, 3000.0), rate(4, 5000.0)),
        contender("coselect", rate(1, 6000.0), rate(4, 12100.0, 12000.0, 0.025))]
PEERS = [contender("torch.compile_cudagraph", rate(1, 2500.0), rate(4, 7900.0, 8000.0, 0.05), layout="nhwc"),
         contender("torch.compile_cudagraph", rate(1, 2400.0), rate(4, 6000.0, 6100.0), layout="nchw"),
         contender("torch.cudagraph", rate(1, 1500.0), rate(4, 4000.0), layout="nhwc"),
         contender("torch.cudagraph_streams", rate(1, 2300.0), rate(4, 5000.0), layout="nchw"),
         contender("torch.compile", rate(1, 900.0), rate(4, 1000.0), layout="nhwc"),
         contender("torch.eager", rate(1, 200.0), rate(4, 210.0), layout="nchw")]


class Ratio(unittest.TestCase):
    def test_best_of_the_finals(self):
        found = throughput_ratio.of(record(*OURS, *PEERS))
        self.assertEqual((found.ours.contender["name"], found.ours.rate["in_flight"]), ("coselect", 4))
        self.assertEqual((found.peer.contender["name"], found.peer.contender["layout"]),
                         ("torch.compile_cudagraph", "nhwc"))
        self.assertAlmostEqual(found.ratio, 1.5)
        self.assertAlmostEqual(found.interval[0], 1.5)
        self.assertAlmostEqual(found.joules, 2.0)

    def test_what_does_not_count(self):
        found = throughput_ratio.of(record(
            contender("streams", rate(1, 9000.0, 9000.0), passed=False), contender("coselect", rate(1, 9999.0), rate(2, 4.0, 4.0)),
            contender("torch.eager", rate(1, 9999.0, 9999.0), passed=False), contender("torch.cudagraph", rate(2, 5.0, 5.0, n=51))))
        self.assertAlmostEqual(found.ratio, 0.8)
        self.assertIsNone(found.interval)  # not as many windows of each
        self.assertIsNone(found.joules)

    def test_nothing_to_compare(self):
        for alone in (OURS, PEERS, [contender("coselect", rate(1, 5.0)), *PEERS]):
            self.assertIsNone(throughput_ratio.of(record(*alone)).ratio)


class Page(PageTest):
    script = "bench/throughput_page.py"
    cold = True

    def test_a_configuration(self):
        text, pictures = self.page(a_throughput=[record(*OURS, *PEERS)])
        summary, *others = self.rows(text, "| googlenet_bn | f16 | 1 |")
        self.assertEqual(summary[3:], ["12000", "coselect", "4", "8000", "torch.compile_cudagraph", "nhwc", "4", "1.50",
                                       "1.50–1.50", "yes", "0.025", "0.05", "2.00", "50", "a-throughput.jsonl"])
        self.assertEqual(others[1][3:], ["coselect", "", "6000", "**12000**", "1.2", "5.0e-04", "ok"])
        self.assertEqual(len(others), len(OURS) + len(PEERS))
        self.assertIn("in **1 of 1** configurations", text)
        self.assertIn("not recorded (3): googlenet_bn/f16/32, resnet50/f16/1, resnet50/f16/32.", text)
        self.assertIn("(throughput/googlenet-bn-a-cuda.svg)", text)
        self.assertEqual(list(pictures), ["googlenet-bn-a-cuda.svg"])

    def test_behind_a_draw_and_not_decided(self):
        slow, even = contender("coselect", rate(4, 1.0, 4000.0)), contender("coselect", rate(4, 1.0, 8000.0))
        text, _ = self.page(a_throughput=[record(slow, *PEERS), record(even, *PEERS, batch=32),
                                          record(*OURS, *PEERS[:-1], model="resnet50")])
        self.assertIn("in **0 of 3** configurations", text)
        self.assertIn("- Behind: googlenet_bn/f16/1 (0.50). A draw: googlenet_bn/f16/32 (1.00).", text)
        self.assertIn("nothing is decided: resnet50/f16/1 (torch.eager).", text)

    def test_what_was_left_out_is_told(self):
        missing = {"name": "torch.eager", "layout": "nchw", "reason": "ImportError: none here"}
        text, _ = self.page(a_throughput=[record(*OURS, *PEERS[:-1], left_out=[missing], no_joules="no counter")])
        self.assertIn("- googlenet_bn/f16/1: torch.eager nchw: ImportError: none here", text)
        self.assertIn("- googlenet_bn/f16/1: joules: no counter", text)
        self.assertIn("in **1 of 1** configurations", text)

    def test_no_record_of_a_gpu(self):
        text, pictures = self.page()
        self.assertIn("No GPU is recorded yet.", text)
        self.assertEqual(pictures, {})
        text, _ = self.page(a_throughput=[record(*OURS, *PEERS, backend="cpu"), record(*OURS)])
        self.assertIn("No GPU is recorded yet.", text)
        self.assertIn("## A cpu", text)
        self.assertNotIn("Wanted and not recorded", text)

    def test_the_newest_record_counts(self):
        old = [contender("coselect", rate(4, 1.0, 9000.0)), *PEERS]
        text, _ = self.page(day_9_throughput=[record(*old)], day_10_throughput=[record(*OURS, *PEERS)],
                            z_peers=[record(*old)], z_throughput=[record(*OURS)])
        self.assertEqual([row[-1] for row in self.rows(text, "| googlenet_bn | f16 | 1 |") if row[-1].endswith(".jsonl")],
                         ["day-10-throughput.jsonl"])

    def test_the_picture_has_a_bar_of_each_name(self):
        wrong = contender("torch.wrong", rate(4, 99999.0), passed=False)
        _, pictures = self.page(a_throughput=[record(*OURS, *PEERS, wrong)])
        svg = pictures["googlenet-bn-a-cuda.svg"]
        root = xml.etree.ElementTree.fromstring(svg)
        rects = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") != "page"]
        self.assertEqual(len(rects), 1 + 5)
        widths = {r.get("class"): float(r.get("width")) for r in rects if r.get("class") in ("ours", "best")}
        self.assertAlmostEqual(widths["ours"] / widths["best"], 1.5, places=2)
        self.assertIn("12000 images/s, 1.00×", svg)
        self.assertNotIn("wrong", svg)

    def test_pages_of_latencies_skip_such_records(self):
        (self.folder / "x-peers-coselect.jsonl").write_text(json.dumps(record(*OURS, *PEERS)) + "\n")
        for page in ("peers_page", "coselect_page"):
            done = subprocess.run([sys.executable, ROOT / f"bench/{page}.py", self.folder], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual((done.returncode, done.stderr), (OK, ""))
            self.assertNotIn("googlenet_bn | f16 | 1 |", done.stdout)
        done = subprocess.run([sys.executable, ROOT / "bench/table.py", self.folder / "x-peers-coselect.jsonl"],
                              capture_output=True, text=True, timeout=60)
        self.assertIn("found no convsched.run/1 records", done.stderr)


class FakeContender:
    """As fast as told, whatever is in flight; `log` has the windows of all in order."""
    batch = 2

    def __init__(self, name, per_s, log, fails_at=None):
        self.name, self.per_s, self.log, self.fails_at, self.images = name, per_s, log, fails_at, 0

    def window(self, in_flight, requests):
        self.log.append((self.name, in_flight))
        if self.fails_at is not None and len(self.log) >= self.fails_at:
            raise RuntimeError("device lost")
        self.images += 2 * (requests + 3 * in_flight)
        return types.SimpleNamespace(requests=requests, all_requests=requests + 3 * in_flight,
                                     images_per_s=2 * self.per_s * in_flight, host_images_per_s=1.0)


class Race(unittest.TestCase):
    def test_windows_are_taken_in_turn(self):
        log = []
        race = throughput_race.Race([FakeContender("a", 100, log), FakeContender("b", 100, log)], [1, 2], 0, self.fail)
        race.screen(2, 0.5)
        four = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        self.assertEqual(log[-8:], four + four[1:] + four[:1])  # another one first each round
        self.assertEqual([len(p.screening) for p in race.points], [2] * 4)
        self.assertEqual([p.screening[0].requests for p in race.points], [50, 100] * 2)  # half a second's

    def test_finals_are_of_the_fastest(self):
        log = []
        slow, fast = FakeContender("slow", 100, log), FakeContender("fast", 150, log)
        race = throughput_race.Race([slow, fast], [1, 2], 0, self.fail)
        race.screen(1, 0.1)
        chosen = throughput_race.best(race.points, 2)
        self.assertEqual([(p.contender.name, p.in_flight) for p in chosen], [("fast", 2), ("slow", 2)])
        race.finish(chosen, 50, 0.1)
        self.assertEqual([len(p.final) for p in race.points], [0, 50, 0, 50])

    def test_one_that_fails_is_out_and_the_others_go_on(self):
        log, told = [], []
        bad, good = FakeContender("bad", 100, log, fails_at=17), FakeContender("good", 100, log)
        race = throughput_race.Race([bad, good], [1, 2], 0, lambda c, error: told.append((c.name, str(error))))
        race.screen(9, 0.1)
        self.assertEqual(told, [("bad", "device lost")])
        self.assertEqual([(p.contender.name, len(p.screening)) for p in race.points], [("good", 9)] * 2)
        self.assertNotIn("bad", [name for name, _ in log[17:]])

    def test_joules_are_of_all_images_of_the_window(self):
        one = FakeContender("one", 100, [])
        race = throughput_race.Race([one], [2], 0, self.fail)
        race.screen(1, 0.1)
        race.weigh(race.points, 5, 1.0, lambda: 0.25 * one.images)
        self.assertEqual(race.points[0].joules, [0.25] * 5)


class LibraryTest(CommandTest):
    """With the library in this process."""

    def setUp(self):
        super().setUp()
        self.library = pathlib.Path(harness.COMMAND).parent / "libconvsched.so"
        if not self.library.exists():
            self.skipTest(f"no {self.library}")
        if any(name in self.library.read_bytes() for name in (b"libasan.so", b"libtsan.so")):
            self.skipTest("a sanitizer must come first in a process")  # and ends one where it does not


class Lists(unittest.TestCase):
    """What the lists of peers say of a class against its source: the systems themselves need not be installed."""

    def arguments(self, classes, name):
        """Of __init__, after self; a class that hands all on (*what) takes its base's."""
        for member in classes[name].body:
            if isinstance(member, ast.FunctionDef) and member.name == "__init__" and not member.args.vararg:
                return [a.arg for a in member.args.args[1:]]
        return self.arguments(classes, classes[name].bases[0].id)

    def test_peers_take_what_they_are_given(self):
        classes = {}
        for path in sorted((ROOT / "bench").glob("*.py")):
            classes.update({(path.stem, n.name): n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)})
        named = {name: node for (_, name), node in classes.items()}
        checked = 0
        for peers in (peer_list.GPU, peer_list.CPU, throughput_list.GPU, throughput_list.CPU):
            for peer in peers.values():
                for name in peer.classes:
                    with self.subTest(name):
                        self.assertIn((peer.module, name), classes)
                        taken = self.arguments(named, name)
                        self.assertEqual(taken[4:], [*peer.others, *(["layout"] if peer.layouts else [])])
                        checked += 1
        self.assertGreater(checked, 12)


@unittest.skipIf(numpy is None, "no NumPy")
class Measuring(LibraryTest):
    """bench/throughput.py in this process, on the CPU, beside a contender that only says what it is told to."""

    def setUp(self):
        super().setUp()
        import in_flight

        class Fake(in_flight.InFlight):
            how = "made up"
            first_result_s = 1.5
            value = 1.0

            def __init__(self, graph, params, precision, inputs, layout):
                self.name, self.layout, self.slots = "fake.net", layout, len(inputs)

            def window(self, n, requests):
                return in_flight.Rate(requests, requests + 3 * n, {"nhwc": 200.0, "nchw": 100.0}[self.layout] * n, 50.0)

            def outputs(self):
                return [[numpy.full((1, 8, 8, 8), self.value, numpy.float32)]] * self.slots

            def details(self):
                return {"layout": self.layout}

        class Failing(Fake):
            def window(self, n, requests):
                raise RuntimeError("device lost")

        class NotANumber(Fake):
            value = float("nan")

        sys.modules["fake_in_flight"] = types.SimpleNamespace(Fake=Fake, Failing=Failing, NotANumber=NotANumber)
        for name, which in (("fake", "Fake"), ("failing", "Failing"), ("nan", "NotANumber")):
            throughput_list.CPU[name] = throughput_list.Peer("fake_in_flight", {which: f"fake.{name}"}, True)
            self.addCleanup(throughput_list.CPU.pop, name)

    def throughput(self, *args):
        """Exit code, what it said, the records."""
        import throughput
        out = self.folder / "out.jsonl"
        argv, sys.argv = sys.argv, ["throughput.py", "--cpu", "--lib", str(self.library), "--threads", "1", "--out", str(out),
                                    "--cache-dir", str(self.folder / "cache"), "--window-seconds", "0.002", "--screen-seconds",
                                    "0.002", *map(str, args)]
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                code = throughput.main()
        except SystemExit as left:
            code = left.code
        finally:
            sys.argv = argv
        return code, said.getvalue(), [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []

    def without_reference(self):
        """As where torch is not installed, so that made up outputs are not wrong."""
        import model_files
        before = model_files.reference
        model_files.reference = lambda *_: (None, None)
        self.addCleanup(setattr, model_files, "reference", before)

    def test_a_record(self):
        self.without_reference()
        code, said, found = self.throughput("--cells", f"{self.model()}/f32/2", "--peers", "fake,failing", "--policies",
                                            "streams", "--in-flight", "3,1,1", "--finalists", "1")
        self.assertEqual((code, len(found)), (OK, 1), said)
        record = found[0]
        self.assertEqual((record["schema"], record["model"], record["batch"], record["reference"]),
                         ("convsched.throughput/1", "tiny", 2, None))
        self.assertEqual([(c["name"], c.get("layout")) for c in record["contenders"]],
                         [("streams", None), ("fake.net", "nhwc"), ("fake.net", "nchw")])
        streams = record["contenders"][0]
        self.assertEqual(streams["verification"]["in_flight"], {"passed": True, "requests": 18, "rel_l2": 0, "bitwise_equal": True})
        self.assertEqual([r["in_flight"] for r in streams["rates"]], [1, 3])
        self.assertTrue(all(len(r["screening"]["images_per_s"]["samples"]) == 3 for r in streams["rates"]))
        finals = [(c["name"], c.get("layout"), r["in_flight"], len(r["final"]["images_per_s"]["samples"]))
                  for c in record["contenders"] for r in c["rates"] if r["final"]]
        self.assertEqual([f for f in finals if f[0] == "fake.net"], [("fake.net", "nhwc", 3, 50)])
        self.assertEqual([f[3] for f in finals if f[0] == "streams"], [50])
        self.assertEqual([(m["layout"], m["reason"]) for m in record["left_out"]],
                         [("nhwc", "RuntimeError: device lost"), ("nchw", "RuntimeError: device lost")])
        self.assertIn("no energy counter", record["no_joules"])
        found = throughput_ratio.of(record)
        self.assertEqual(found.peer.images_per_s, 600.0)
        self.assertIn(f"ratio {found.ratio:.2f}", said)

    def test_wrong_results_take_no_part(self):
        import model_files
        with_ones = lambda graph, params, inputs, cpu: ([numpy.ones((1, 8, 8, 8))], "made up")
        before, model_files.reference = model_files.reference, with_ones
        self.addCleanup(setattr, model_files, "reference", before)
        code, said, found = self.throughput("--cells", f"{self.model()}/f32/1", "--peers", "fake,nan", "--policies",
                                            "sequential", "--in-flight", "2")
        self.assertEqual(code, WRONG, said)  # convsched's outputs are no ones
        passed = [(c["verification"]["passed"], bool(c["rates"][0]["final"])) for c in found[0]["contenders"]]
        self.assertEqual(passed, [(False, False), (True, True), (True, True), (False, False), (False, False)])
        self.assertIsNone(found[0]["contenders"][-1]["rel_l2_float64"])
        self.assertFalse(found[0]["verification"]["passed"])

    def test_done_ones_are_skipped(self):
        self.without_reference()
        tiny = self.model()
        code, said, found = self.throughput("--cells", f"{tiny}/f32/1", "--peers", "", "--policies", "sequential", "--in-flight", "1")
        self.assertEqual((code, len(found)), (OK, 1), said)
        run = self.file("run.jsonl", json.dumps({"schema": "convsched.run/1", "model": "tiny", "dtype": "f32", "batch": 2}) + "\n")
        code, said, found = self.throughput("--cells", f"{tiny}/f32/1,{tiny}/f32/2", "--peers", "", "--policies", "sequential",
                                            "--in-flight", "1", "--done", self.folder / "out.jsonl", run)
        self.assertEqual((code, [r["batch"] for r in found]), (OK, [1, 2]), said)

    def test_a_policy_that_is_not_there(self):
        code, said, found = self.throughput("--cells", f"{self.model()}/f32/1", "--peers", "", "--policies", "nonsense")
        self.assertEqual((code, found), (WRONG, []), said)
        self.assertIn("nonsense", said)

    def test_planned_for_requests_that_a_cpu_has_not(self):
        code, said, found = self.throughput("--cells", f"{self.model()}/f32/1", "--peers", "", "--policies", "coselect:2")
        self.assertEqual((code, found), (WRONG, []), said)
        self.assertIn("no requests in flight", said)

    def test_policies_that_are_not_said(self):
        code, said, found = self.throughput("--cells", f"{self.model()}/f32/1", "--peers", "", "--in-flight", "1",
                                            "--search-seconds", "0.2")
        self.assertEqual((code, [c["name"] for c in found[0]["contenders"]]), (OK, ["sequential", "streams", "coselect"]), said)

    def test_pytorch_on_a_cpu(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no PyTorch")
        code, said, found = self.throughput("--cells", f"{self.model()}/f32/1", "--peers", "threads", "--policies",
                                            "sequential", "--in-flight", "1,2", "--finalists", "1")
        self.assertEqual((code, [c["name"] for c in found[0]["contenders"]], found[0]["left_out"]),
                         (OK, ["sequential", "torch.cpu_threads"], []), said)

    def test_usage(self):
        tiny = f"{self.model()}/f32/1"
        damaged = self.file("damaged.jsonl", '{"schema": "convsched.throughput/1", "mod')
        other = self.file("other.jsonl", '{"schema": "convsched.throughput/1"}\n')
        for args, told in (((), "--cells"), (("--cells", "tiny"), "found tiny, wanted MODEL/DTYPE/BATCH"),
                           (("--cells", "nowhere/f32/1"), "no file"), (("--cells", tiny[:-1] + "0"), "found batch 0"),
                           (("--cells", tiny.replace("f32", "f64")), "found f64"), (("--cells", ","), "found none"),
                           (("--cells", tiny.replace("f32", "f16")), "wanted f32 with --cpu"),
                           (("--cells", tiny, "--peers", "nonsense"), "found nonsense, wanted some of"),
                           (("--cells", tiny, "--layouts", "nwhc"), "found nwhc"),
                           (("--cells", tiny, "--in-flight", "17"), "wanted numbers from 1 to 16"),
                           (("--cells", tiny, "--in-flight", "0,1"), "wanted numbers from 1 to 16"),
                           (("--cells", tiny, "--in-flight", "two"), "found two"),
                           (("--cells", tiny, "--rounds", "9"), "at least 50"),
                           (("--cells", tiny, "--finalists", "0"), "at least 1"),
                           (("--cells", tiny, "--window-seconds", "-1"), "wanted seconds"),
                           (("--cells", tiny, "--policies", ","), "--policies"),
                           (("--cells", tiny, "--policies", "coselect:"), "found coselect:, wanted POLICY or POLICY:N"),
                           (("--cells", tiny, "--policies", "coselect:17"), "found coselect:17"),
                           (("--cells", tiny, "--policies", ":8"), "found :8"),
                           (("--cells", tiny, "--seed", "-1"), "--seed: found -1, wanted a whole number, at least 0"),
                           (("--cells", tiny, "--most", "-1"), "--most: found -1, wanted a whole number, at least 1"),
                           (("--cells", tiny, "--search-seconds", "-1"), "--search-seconds: found -1, wanted seconds"),
                           (("--cells", tiny, "--prepare-seconds", "nan"), "--prepare-seconds: found nan"),
                           (("--cells", tiny, "--time-limit", "inf"), "--time-limit: found inf"),
                           (("--cells", tiny, "--done", damaged), "damaged.jsonl"),
                           (("--cells", tiny, "--done", other), "other.jsonl"),
                           (("--cells", tiny, "--done", "missing.jsonl"), "missing.jsonl"),
                           (("--cells", tiny, "--lib", "none.so"), "no file none.so"),
                           (("--cells", tiny, "--out", self.folder / "none" / "out.jsonl"), "--out: no folder"),
                           (("--cells", tiny, "--device", "nonsense"), "nonsense")):
            with self.subTest(args):
                code, said, found = self.throughput(*args)
                self.assertEqual((code, found), (USAGE, []), said)
                self.assertIn(told, said.splitlines()[-1])


@unittest.skipIf(numpy is None, "no NumPy")
class Rates(unittest.TestCase):
    def test_from_the_ends_of_requests(self):
        import in_flight
        # Of 2 in flight: 4 before, 5 timed, 2 behind; 10 us each, two of them the other way round.
        ends = [10.0 * i for i in range(11)]
        ends[3], ends[4] = ends[4], ends[3]
        found = in_flight.rate_of(ends, 2, 8, 0.001)
        self.assertEqual((found.requests, found.all_requests), (5, 11))
        self.assertAlmostEqual(found.images_per_s, 8 / 10e-6)
        self.assertAlmostEqual(found.host_images_per_s, 88000)
        with self.assertRaises(ValueError):
            in_flight.rate_of(ends[:6], 2, 8, 0.001)


@unittest.skipIf(numpy is None, "no NumPy")
class Pipelines(LibraryTest):
    """bench/convsched.py's."""

    def test_requests_give_what_the_session_does(self):
        import convsched
        library = convsched.Library(self.library)
        random = numpy.random.default_rng(0)
        arrays = [[random.standard_normal((2, 3, 8, 8), numpy.float32)] for _ in range(3)]
        empty = lambda: [numpy.zeros((2, 8, 8, 8), numpy.float32)]
        with library.load_graph(self.model()) as graph, library.open_device("cpu") as device, \
                convsched.Session(device, graph, "streams", 2, cache_dir=str(self.folder / "cache")) as session:
            wanted = [empty() for _ in arrays]
            for given, results in zip(arrays, wanted):
                session.run(given, results)
            with convsched.Pipeline(session, 3) as pipeline:
                for slot, given in enumerate(arrays):
                    pipeline.submit(slot, given)
                with self.assertRaisesRegex(convsched.Error, "slot 1 has a request in flight") as refused:
                    pipeline.submit(1)
                self.assertEqual(refused.exception.exit_code, USAGE)
                for slot, results in enumerate(wanted):
                    found = empty()
                    pipeline.wait(slot, found)
                    self.assertTrue(numpy.array_equal(found[0], results[0]))
                    self.assertTrue(numpy.any(found[0]))
                pipeline.submit(2)  # with the inputs it had
                found = empty()
                pipeline.wait(2, found)
                self.assertTrue(numpy.array_equal(found[0], wanted[2][0]))
                rate = pipeline.window(3, 7)
                self.assertEqual((rate.requests, rate.all_requests), (7, 7 + 9))
                self.assertAlmostEqual(rate.images_per_s * rate.seconds, 14)
                self.assertTrue(pipeline.verify().passed)
                self.assertEqual(pipeline.arena_bytes(), 3 * session.info()["arena_bytes"])
                self.assertIn("one request after the other", pipeline.how())
            with self.assertRaisesRegex(convsched.Error, "wanted 1 to 16"):
                convsched.Pipeline(session, 17)
            with self.assertRaisesRegex(convsched.Error, "not available"):
                device.energy()


if __name__ == "__main__":
    harness.main()
