"""bench/peers.py and the page and pictures that bench/peers_page.py makes of its records, with other systems made
up: neither torch nor JAX is needed. What measures needs NumPy and is skipped without it."""
import contextlib
import io
import json
import pathlib
import sys
import time
import types
import unittest
import xml.etree.ElementTree

import harness
from harness import OK, ROOT, USAGE, WRONG, CommandTest
from page_test import PageTest

sys.path.insert(0, str(ROOT / "bench"))
import peer_list
import peer_ratio

try:
    import numpy
except ImportError:
    numpy = None


def entry(name, us, passed=True, n=50, **more):
    """One whose samples are `us`, a little up and down."""
    samples = [us * (1 + 0.001 * (i % 3 - 1)) for i in range(n)]
    return {"name": name, "latency_us": {"median": us, "p10": us * 0.999, "p90": us * 1.001, "variation": 0.001,
                                         "samples": samples},
            "verification": {"passed": passed}, **more}


def record(*entries, model="googlenet", dtype="f16", batch=32, **more):
    return {"schema": "convsched.run/1", "model": model, "dtype": dtype, "batch": batch, "commit": "0" * 40,
            "command": "", "device": {"name": "A GPU", "backend": "cuda"}, "policies": list(entries), **more}


ALL = [entry("sequential", 200.0), entry("streams", 120.0), entry("coselect", 100.0, first_result_s=7.25),
       entry("torch.eager", 900.0), entry("torch.cudagraph", 260.0),
       entry("torch.cudagraph_streams", 210.0, layout="nhwc", other_layout={"layout": "nchw", "median": 215.5}),
       entry("torch.compile", 190.0, first_result_s=31.5), entry("torch.compile_static", 180.0, prepare_reuses="x",
                                                                 first_result_s=2.0),
       entry("jax.jit", 170.0, first_result_s=44.0)]


class Ratio(unittest.TestCase):
    def test_best_peer_over_best_policy(self):
        found = peer_ratio.of(record(*ALL))
        self.assertEqual((found.peer["name"], found.ours["name"]), ("jax.jit", "coselect"))
        self.assertAlmostEqual(found.ratio, 1.7)
        self.assertAlmostEqual(found.coselect, 1.7)
        low, high = found.interval
        self.assertTrue(1.69 < low <= 1.7 <= high < 1.71, found.interval)

    def test_coselect_that_is_not_the_best(self):
        found = peer_ratio.of(record(entry("streams", 100.0), entry("coselect", 125.0), entry("jax.jit", 150.0)))
        self.assertEqual(found.ours["name"], "streams")
        self.assertAlmostEqual(found.ratio, 1.5)
        self.assertAlmostEqual(found.coselect, 1.2)

    def test_what_does_not_count(self):
        found = peer_ratio.of(record(
            entry("streams", 50.0, passed=False), entry("sequential", 100.0), entry("jax.jit", 20.0, passed=False),
            entry("torch.compile_max_autotune", 30.0, outside_ratio=True), {"name": "torch.x", "latency_us": None}, entry("torch.y", 0.0),
            entry("torch.cudagraph", 110.0, n=51)))
        self.assertEqual((found.peer["name"], found.ours["name"]), ("torch.cudagraph", "sequential"))
        self.assertAlmostEqual(found.ratio, 1.1)
        self.assertIsNone(found.interval)  # not as many samples of each: nothing to pair
        self.assertIsNone(found.coselect)

    def test_nothing_to_compare(self):
        for alone in (entry("sequential", 1.0), entry("jax.jit", 1.0)):
            found = peer_ratio.of(record(alone))
            self.assertIsNone(found.ratio)
            self.assertIsNone(found.interval)


class Page(PageTest):
    script = "bench/peers_page.py"

    def test_a_configuration(self):
        text, pictures = self.page(a_peers=[record(*ALL)])
        summary, *contenders = self.rows(text, "| googlenet | f16 | 32 |")
        self.assertEqual(summary[:5], ["googlenet", "f16", "32", "100.0", "coselect"])
        # Peers by name, the best, ratio, interval, coselect, what the issue wants, whether it is so.
        self.assertEqual(summary[5:], ["170.0", "190.0", "180.0", "260.0", "210.0", "900.0", "jax.jit", "1.70",
                                       summary[13], "1.70", "1.5", "yes", "50", "a-peers.jsonl"])
        self.assertRegex(summary[13], r"^1\.(69|70)–1\.7")
        self.assertIn("**1 of 1** configurations", text)
        by_name = {row[3]: row for row in contenders}
        self.assertEqual({name: row[10] for name, row in by_name.items() if row[10]},  # preparation
                         {"coselect": "7.2", "torch.compile": "31.5", "torch.compile_static": "2.0∗", "jax.jit": "44.0"})
        self.assertEqual(by_name["torch.cudagraph_streams"][4:9], ["nhwc", "210.0", "209.8", "210.2", "215.5"])
        self.assertEqual(list(pictures), ["googlenet-a-gpu.svg"])
        self.assertIn("(peers/googlenet-a-gpu.svg)", text)

    def test_a_bar_that_is_missed_and_one_not_decided(self):
        slow = [entry("coselect", 150.0) if e["name"] == "coselect" else e for e in ALL]
        text, _ = self.page(a_peers=[record(*slow), record(*ALL[:-1], batch=1, dtype="tf32")])
        self.assertIn("**0 of 2** configurations", text)
        self.assertIn("Not reached: googlenet/tf32/1 (1.80 of 2.0), googlenet/f16/32 (1.42 of 1.5)", text)
        self.assertIn("nothing is decided: googlenet/tf32/1 (jax.jit)", text)

    def test_a_peer_that_was_left_out_is_told(self):
        missing = {"name": "jax.jit", "layout": "nchw", "reason": "ImportError: none here"}
        text, _ = self.page(a_peers=[record(*ALL[:-1], left_out=[missing])])
        self.assertIn("- googlenet/f16/32: jax.jit nchw: ImportError: none here", text)
        self.assertIn("nothing is decided: none", text)
        self.assertIn("**1 of 1** configurations", text)  # over the other peers: 1.80

    def test_marks(self):
        wrong, outside = entry("jax.jit", 20.0, passed=False), entry("torch.compile_max_autotune", 30.0,
                                                                     outside_ratio=True)
        text, pictures = self.page(a_peers=[record(*ALL[:-1], wrong, outside)])
        summary = self.rows(text, "| googlenet | f16 | 32 |")[0]
        self.assertIn("20.0 WRONG", summary)
        self.assertIn("30.0†", summary)
        self.assertIn("torch.compile_static", summary)  # the best that counts
        svg = next(iter(pictures.values()))
        self.assertIn('class="outside"', svg)
        self.assertNotIn("jax.jit", svg)

    def test_the_newest_record_counts_and_others_are_no_peers(self):
        old = [entry(e["name"], e["latency_us"]["median"] * (1 if "." in e["name"] else 2)) for e in ALL]
        text, _ = self.page(day_9_peers=[record(*old)], day_10_peers=[record(*ALL)], other_coselect=[record(*old)],
                            z_peers=[record(*ALL[:3])])
        rows = self.rows(text, "| googlenet | f16 | 32 | 100.0 |")
        self.assertEqual((len(rows), rows[0][-1]), (1, "day-10-peers.jsonl"))

    def test_pictures_are_well_formed_and_have_a_bar_for_each(self):
        named = [dict(e, name=e["name"].replace("jax.jit", "a.b<&>")) for e in ALL]
        _, pictures = self.page(a_peers=[record(*named), record(*ALL, dtype="tf32", batch=1)])
        root = xml.etree.ElementTree.fromstring(pictures["googlenet-a-gpu.svg"])
        rects = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") != "page"]
        self.assertEqual(len(rects), 2 * (len(ALL) - 2))  # of ours the best
        widths = {r.get("class"): float(r.get("width")) for r in rects if r.get("class") in ("ours", "best")}
        self.assertAlmostEqual(widths["best"] / widths["ours"], 1.7, places=2)
        self.assertIn("9.00× (cut off)", pictures["googlenet-a-gpu.svg"])


class FakePeers(unittest.TestCase):
    def test_one_that_fails_is_left_out_and_the_others_are_made(self):
        class Good:
            def __init__(self, *what):
                self.what = what

        class Bad:
            def __init__(self, *_):
                raise RuntimeError("no kernel\nmore")

        class Slow:
            def __init__(self, *_):
                time.sleep(30)

        sys.modules["fake_peers"] = types.SimpleNamespace(Good=Good, Bad=Bad, Slow=Slow)
        peers = {"two": peer_list.Peer("fake_peers", {"Good": "f.good", "Bad": "f.bad"}, True),
                 "none": peer_list.Peer("not_installed_here", {"X": "n.x"}, False),
                 "slow": peer_list.Peer("fake_peers", {"Slow": "f.slow"}, False),
                 "last": peer_list.Peer("fake_peers", {"Good": "f.last"}, False, ("threads",)),
                 "both": peer_list.Peer("fake_peers", {"Good": "f.both"}, True, ("file", "threads"))}
        said = []
        made, missing = peer_list.make(peers, list(peers), ["nchw", "nhwc"], (1, 2), {"threads": 7, "file": "a"},
                                       0.5, said.append)
        self.assertEqual([contender.what for contender in made], [(1, 2, "nchw"), (1, 2, "nhwc"), (1, 2, 7), (1, 2, "a", 7, "nchw"),
                                                              (1, 2, "a", 7, "nhwc")])
        self.assertEqual([(m["name"], m["layout"]) for m in missing],
                         [("f.bad", "nchw"), ("f.bad", "nhwc"), ("n.x", None), ("f.slow", None)])
        self.assertEqual(missing[0]["reason"], "RuntimeError: no kernel")
        self.assertEqual(missing[-1]["reason"], "TimeoutError: not prepared in 0.5 s")
        self.assertEqual(len(said), 4)


@unittest.skipIf(numpy is None, "no NumPy")
class Measuring(CommandTest):
    """bench/peers.py in this process, on the CPU, beside a contender that only says what it is told to."""

    def setUp(self):
        super().setUp()
        self.library = pathlib.Path(harness.COMMAND).parent / "libconvsched.so"
        if not self.library.exists():
            self.skipTest(f"no {self.library}")
        if any(name in self.library.read_bytes() for name in (b"libasan.so", b"libtsan.so")):
            self.skipTest("a sanitizer must come first in a process")  # and ends one where it does not
        import contenders

        class Fake(contenders.Contender):
            figures = {"nchw": 30.0, "nhwc": 20.0}
            how = "made up"
            first_result_s = 1.5

            def __init__(self, graph, params, precision, inputs, layout):
                self.name, self.layout, self.inputs, self.taken = "fake.net", layout, inputs, 0

            def sample(self):
                self.taken += 1
                return self.figures[self.layout]

            def outputs(self):
                return [numpy.ones((1, 8, 8, 8), numpy.float32)]

            def details(self):
                return {"layout": self.layout}

        class Failing(Fake):
            def sample(self):
                raise RuntimeError("device lost")

        sys.modules["fake_peers"] = types.SimpleNamespace(Fake=Fake, Failing=Failing)
        peer_list.CPU["fake"] = peer_list.Peer("fake_peers", {"Fake": "fake.net"}, True)
        peer_list.CPU["failing"] = peer_list.Peer("fake_peers", {"Failing": "fake.failing"}, True)

    def tearDown(self):
        peer_list.CPU.pop("fake", None)
        peer_list.CPU.pop("failing", None)
        super().tearDown()

    def peers(self, *args):
        """Exit code, what it said, the records."""
        import peers
        out = self.folder / "out.jsonl"
        argv, sys.argv = sys.argv, ["peers.py", "--cpu", "--lib", str(self.library), "--threads", "1", "--out", str(out),
                                    "--cache-dir", str(self.folder / "cache"), *map(str, args)]
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                code = peers.main()
        except SystemExit as left:
            code = left.code
        finally:
            sys.argv = argv
        return code, said.getvalue(), [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []

    def test_a_record(self):
        code, said, found = self.peers("--models", self.model(), "--peers", "fake,failing", "--policies", "streams",
                                       "--batches", "1,2", "--most", "1")
        self.assertEqual(len(found), 1, said)
        record = found[0]
        self.assertEqual([p["name"] for p in record["policies"]], ["sequential", "streams", "fake.net"])
        self.assertTrue(all(len(p["latency_us"]["samples"]) == 50 for p in record["policies"]))
        fake = record["policies"][-1]
        self.assertEqual((fake["layout"], fake["latency_us"]["median"], fake["prepare_s"], fake["first_result_s"]),
                         ("nhwc", 20.0, 1.5, 1.5))
        self.assertEqual(fake["other_layout"], {"layout": "nchw", "median": 30.0, "first_result_s": 1.5,
                                                "passed": fake["other_layout"]["passed"]})
        self.assertTrue(all(p["first_result_s"] > 0 for p in record["policies"]))
        self.assertEqual([(m["name"], m["reason"]) for m in record["left_out"]],
                         [("fake.net", "RuntimeError: device lost")] * 2)
        self.assertEqual([m["layout"] for m in record["left_out"]], ["nchw", "nhwc"])
        wrong = fake["verification"]["passed"] is False  # its ones are wrong where there is a float64 reference
        self.assertEqual(code, WRONG if wrong else OK, said)

    def test_cells_in_order_and_done_ones_skipped(self):
        tiny = self.model()
        code, said, found = self.peers("--cells", f"{tiny}/f32/2,{tiny}/f32/1", "--peers", "", "--policies", "streams")
        self.assertEqual((code, [r["batch"] for r in found]), (OK, [2, 1]), said)
        code, said, found = self.peers("--cells", f"{tiny}/f32/2,{tiny}/f32/3", "--peers", "", "--done",
                                       self.folder / "out.jsonl")
        self.assertEqual((code, [r["batch"] for r in found]), (OK, [2, 1, 3]), said)

    def test_search_seconds_and_a_policy_that_is_not_there(self):
        tiny = self.model()
        code, said, found = self.peers("--models", tiny, "--peers", "", "--policies", "coselect", "--search-seconds",
                                       "0.2")
        self.assertEqual((code, [p["name"] for p in found[0]["policies"]]), (OK, ["sequential", "coselect"]), said)
        code, said, found = self.peers("--models", tiny, "--peers", "", "--policies", "nonsense", "--batches", "1")
        self.assertEqual((code, len(found)), (1, 1))
        self.assertIn("nonsense", said)

    def test_max_autotune_is_given_up(self):
        import max_autotune
        entries, missing = max_autotune.beside(self.model(), "none.safetensors", [numpy.ones(1)], None, "f16", ["nhwc"],
                                               50, 0.01)
        self.assertEqual(entries, [])
        self.assertEqual(missing, [{"name": "torch.compile_max_autotune", "layout": "nhwc",
                                    "reason": "not compiled and measured in 0.01 s"}])

    def test_usage(self):
        tiny = self.model()
        damaged = self.file("damaged.jsonl", '{"schema": "convsched.run/1", "mod')
        for args, told in ((("--peers", "nonsense"), "found nonsense, wanted some of"),
                           (("--rounds", "9"), "at least 50"), (("--layouts", "nwhc"), "found nwhc"),
                           (("--max-autotune", "9"), "not with --cpu"), (("--models", "nowhere"), "nowhere.json"),
                           (("--models", ","), "found none"), (("--batches", "two"), "--batches: found two"),
                           (("--batches", "1,0"), "--batches: found 0"), (("--dtypes", "f99"), "found f99, wanted one of"),
                           (("--dtypes", "f32,f16"), "found f16, wanted f32 with --cpu"),
                           (("--cells", "tiny"), "found tiny, wanted MODEL/DTYPE/BATCH"),
                           (("--cells", f"{tiny}/f32/0"), "found batch 0"), (("--threads", "0"), "--threads: found 0"),
                           (("--seed", "-1"), "--seed: found -1"), (("--most", "0"), "--most: found 0"),
                           (("--search-seconds", "nan"), "--search-seconds: found nan"),
                           (("--prepare-seconds", "-1"), "--prepare-seconds: found -1"),
                           (("--lib", "none.so"), "no file none.so"), (("--done", "missing.jsonl"), "missing.jsonl"),
                           (("--done", damaged), "damaged.jsonl"), (("--device", "nonsense"), "nonsense"),
                           (("--out", self.folder / "none" / "out.jsonl"), "--out: no folder"),
                           (("--out", self.folder), "cannot be written")):
            with self.subTest(args):
                code, said, found = self.peers("--models", tiny, *args)
                self.assertEqual((code, found), (USAGE, []))
                self.assertIn(told, said)


if __name__ == "__main__":
    harness.main()
