"""`compare`: two files of records side by side."""
import copy
import json
import os
import random

import harness
from harness import BAD_INPUT, USAGE, WRONG, CommandTest

NOT_FOUND = BAD_INPUT  # the same exit code


def samples(median, n=51, spread=0.01, seed=1):
    """Samples with exactly this median."""
    drawn = random.Random(seed)
    half = [median * (1 + spread * drawn.random()) for _ in range(n // 2)]
    return [median, *half, *(2 * median - value for value in half)][:n]


def latency(median, **more):
    return {"median": median, "samples": samples(median, **more)}


def run(policies, model="googlenet", dtype="f16", batch=1, **more):
    return {"schema": "convsched.run/1", "model": model, "dtype": dtype, "batch": batch, "commit": "abc",
            "device": {"name": "NVIDIA H100"}, **more,
            "policies": [{"name": name, "latency_us": told} for name, told in policies.items()]}


def throughput(rates, **more):
    return {"schema": "convsched.throughput/1", "model": "resnet50", "dtype": "f16", "batch": 32, "commit": "def",
            "device": {"name": "NVIDIA H100"}, **more,
            "contenders": [{"name": name, **({"layout": layout} if layout else {}), "rates": [
                {"in_flight": n, "final": {"images_per_s": latency(rate)} if rate else None} for n, rate in of.items()]}
                           for (name, layout), of in rates.items()]}


class Compare(CommandTest):
    def records(self, name, *documents):
        return self.file(name, "\n".join(json.dumps(document) for document in documents) + "\n")

    def told(self, a, b, *args, code=0):
        found, out, err = self.execute("compare", a, b, "--format", "json", *args)
        self.assertEqual(found, code, err)
        told = json.loads(out)
        return told, {(row["model"], row["contender"], row["layout"] if "layout" in row else None,
                       row["metric"]): row for row in told["rows"]}

    def test_names_that_are_not_utf8(self):
        name = os.fsdecode(b"\xe4.json")
        self.records(name, run({"streams": latency(100)}))
        told, _ = self.told(self.folder / name, name)
        self.assertEqual(told["b"]["path"], "?.json")

    def test_times_that_are_no_times(self):
        """Ratios beyond a double are null in JSON."""
        a = self.records("a.json", run({"streams": {"median": 1e-300, "samples": [0, -1, 1e-300]}}))
        b = self.records("b.json", run({"streams": {"median": 1e300, "samples": [1e300, 1e308, 0]}}))
        told, rows = self.told(a, b)
        self.assertIsNone(rows["googlenet", "streams", None, "latency us"]["slowdown"])
        self.assertIsNone(told["summary"]["worst"])

    def test_latencies(self):
        a = self.records("a.jsonl", run({"streams": latency(100), "coselect": latency(90), "opara": latency(80)}))
        b = self.records("b.jsonl", run({"streams": latency(110), "coselect": latency(81), "opara": latency(80.1)},
                                        commit="xyz"))
        told, rows = self.told(a, b)
        self.assertEqual((told["a"]["commit"], told["b"]["commit"]), ("abc", "xyz"))
        verdicts = {policy: row["verdict"] for (_, policy, _, _), row in rows.items()}
        self.assertEqual(verdicts, {"streams": "slower", "coselect": "faster", "opara": "the same"})
        row = rows["googlenet", "streams", None, "latency us"]
        self.assertAlmostEqual(row["slowdown"], 1.1)
        self.assertLess(row["slowdown_low"], 1.1)
        self.assertGreater(row["slowdown_high"], 1.1)
        self.assertLessEqual(row["a_low"], 100)
        self.assertGreaterEqual(row["a_high"], 100)
        self.assertAlmostEqual(row["slowdown_low"], row["b_low"] / row["a_high"], places=5)
        self.assertEqual({k: told["summary"][k] for k in ("rows", "faster", "slower", "same", "regressions")},
                         {"rows": 3, "faster": 1, "slower": 1, "same": 1, "regressions": 0})

    def test_regression(self):
        a = self.records("a.jsonl", run({"streams": latency(100)}))
        b = self.records("b.jsonl", run({"streams": latency(110)}))
        self.told(a, b, "--max-regression", "12")
        told, rows = self.told(a, b, "--max-regression", "9.5%", code=WRONG)
        self.assertEqual(rows["googlenet", "streams", None, "latency us"]["verdict"], "a regression")
        self.told(b, a, "--max-regression", "0")  # faster
        noisy = self.records("noisy.jsonl", run({"streams": latency(110, spread=0.9)}))
        self.told(a, noisy, "--max-regression", "5")  # may be nothing

    def test_rates(self):
        """More images a second are faster; what did not reach the final rounds is not compared."""
        a = self.records("a.jsonl", throughput({("coselect", None): {4: 1000, 8: None}, ("torch.eager", "nhwc"): {4: 500}}))
        b = self.records("b.jsonl", throughput({("coselect", None): {4: 800, 8: 900}, ("torch.eager", "nhwc"): {4: 700},
                                                ("torch.eager", "nchw"): {4: 600}}))
        told, rows = self.told(a, b)
        self.assertEqual(len(rows), 2)
        ours, theirs = (rows["resnet50", name, layout, "images/s, 4 in flight"]
                        for name, layout in (("coselect", None), ("torch.eager", "nhwc")))
        self.assertEqual((ours["verdict"], theirs["verdict"]), ("slower", "faster"))
        self.assertAlmostEqual(ours["slowdown"], 1.25)
        self.assertTrue(any("Only in B: 2" in note for note in told["notes"]))

    def test_the_last_counts(self):
        a = self.records("a.jsonl", run({"streams": latency(100)}), run({"streams": latency(50)}))
        b = self.file("b.json", json.dumps(run({"streams": latency(100)}), indent=2))
        told, rows = self.told(a, b)
        self.assertAlmostEqual(rows["googlenet", "streams", None, "latency us"]["slowdown"], 2)
        self.assertTrue(any("1 results of A were measured again" in note for note in told["notes"]))

    def test_predicted(self):
        predicted = run({})
        predicted["policies"] = [{"name": "streams", "predicted": True, "predicted_us": 100.0}]
        other = copy.deepcopy(predicted)
        other["policies"][0]["predicted_us"] = 101.0
        _, rows = self.told(self.records("a.json", predicted), self.records("b.json", other))
        row = rows["googlenet", "streams", None, "predicted us"]
        self.assertEqual(row["verdict"], "slower")
        self.assertAlmostEqual(row["slowdown_low"], 1.01)

    def test_few_samples(self):
        a = self.records("a.json", run({"streams": latency(100, n=3)}))
        told, _ = self.told(a, a)
        self.assertTrue(any("fewer than 7 samples" in note for note in told["notes"]))

    def test_formats(self):
        a = self.records("a.json", run({"streams": latency(100)}))
        out, _ = self.accepted(self.execute("compare", a, a))
        self.assertIn("the same", out)
        out, _ = self.accepted(self.execute("compare", a, a, "--format", "csv"))
        self.assertIn("slowdown_low", out.splitlines()[0])

    def test_a_real_run(self):
        for name in ("a.json", "b.json"):
            self.accepted(self.run_tiny("--json", name, "--samples", "9", "--policy", "sequential"))
        told, rows = self.told("a.json", "b.json")
        self.assertEqual(list(rows), [("tiny", "sequential", None, "latency us")])

    def test_bad_input(self):
        good = self.records("good.json", run({"streams": latency(100)}))
        bad = {
            "nothing": "", "broken": '{"schema": ', "no record": "[1]", "a number": "7",
            "another schema": json.dumps({"schema": "convsched.plan/1"}),
            "no model": json.dumps({"schema": "convsched.run/1", "policies": []}),
            "no policies": json.dumps(run({})),
            "a median of 0": json.dumps(run({"streams": {"median": 0, "samples": [0]}})),
            "a text": json.dumps(run({"streams": {"median": "1"}})),
        }
        for what, text in bad.items():
            with self.subTest(what):
                path = self.file("bad.json", text)
                self.refused(self.execute("compare", good, path), BAD_INPUT, "bad.json")
                self.refused(self.execute("compare", path, good), BAD_INPUT, "bad.json")
        self.refused(self.execute("compare", good, "missing.json"), 4, "missing.json")
        other = self.records("other.json", run({"streams": latency(100)}, dtype="f32"))
        self.refused(self.execute("compare", good, other), NOT_FOUND, "nothing in common", "googlenet f32 batch 1")

    def test_use(self):
        good = self.records("good.json", run({"streams": latency(100)}))
        self.refused(self.execute("compare", good), USAGE, "two files")
        for wrong in ("-1", "x", "3%%"):
            self.refused(self.execute("compare", good, good, "--max-regression", wrong), USAGE, "percent")
        self.refused(self.execute("compare", good, good, "--json", good), USAGE, "would replace")


if __name__ == "__main__":
    harness.main()
