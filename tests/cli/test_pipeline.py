"""`run --pipeline N`: throughput with one and with N requests in flight, on the CPU; what is refused."""
import json

import harness
from harness import BAD_INPUT, OK, ROOT, USAGE, CommandTest

WINDOWS = 7


class Pipeline(CommandTest):
    def measured(self, *args):
        """The records' pipeline members by policy, and what is printed."""
        out, err = self.accepted(self.run_tiny("--samples", "3", "--quiet", "--json", "out.json", *args))
        self.assertEqual(err, "")
        record = json.loads((self.folder / "out.json").read_text())
        return {p["name"]: p.get("pipeline") for p in record["policies"]}, out

    def test_one_to_four(self):
        for n in range(1, 5):
            with self.subTest(n):
                found, out = self.measured("--pipeline", str(n), "--policy", "sequential")
                pipeline = found["sequential"]
                self.assertEqual(pipeline["in_flight"], n)
                self.assertEqual([r["in_flight"] for r in pipeline["rates"]], sorted({1, n}))
                self.assertEqual(pipeline["verification"], {"passed": True, "requests": 6 * n, "rel_l2": 0,
                                                            "bitwise_equal": True})
                for rate in pipeline["rates"]:
                    images = rate["images_per_s"]
                    self.assertEqual(len(images["samples"]), WINDOWS)
                    self.assertTrue(0 < images["p10"] <= images["median"] <= images["p90"])
                    latency = rate["latency_us"]
                    self.assertTrue(0 < latency["p10"] <= latency["median"] <= latency["p90"])
                    self.assertIsNone(rate["joules_per_image"])
                self.assertIn("reads no energy counter", pipeline["no_joules"])
                self.assertIn("Joules of the whole board: not available", out)
                self.assertRegex(out, rf"\nsequential +{n} .* ok\n")

    def test_rates_are_of_images(self):
        """Requests of four images, in the seconds of a window (medians of an odd number of windows match)."""
        found, _ = self.measured("--pipeline", "1", "--policy", "sequential", "--batch", "4")
        rate = found["sequential"]["rates"][0]
        self.assertAlmostEqual(rate["images_per_s"]["median"] * rate["window_s"], 4 * rate["requests"],
                               delta=0.01 * rate["requests"])

    def test_every_policy_of_the_run(self):
        found, out = self.measured("--pipeline", "2", "--policy", "streams")
        arenas = {name: pipeline["arena_bytes"] for name, pipeline in found.items()}
        record = json.loads((self.folder / "out.json").read_text())
        self.assertEqual(arenas, {p["name"]: 2 * p["arena_bytes"] for p in record["policies"]})
        self.assertRegex(out, r"\nstreams +2 ")

    def test_without_the_option_nothing_is_said(self):
        found, out = self.measured()
        self.assertEqual(set(found.values()), {None})
        self.assertNotIn("in flight", out)

    def test_not_checked(self):
        found, out = self.measured("--pipeline", "2", "--policy", "sequential", "--verify", "none")
        self.assertIsNone(found["sequential"]["verification"])
        self.assertRegex(out, r"\nsequential +2 .* not checked\n")

    def test_no_graphs_on_a_cpu(self):
        found, _ = self.measured("--pipeline", "2", "--policy", "sequential", "--no-graph")
        self.assertTrue(found["sequential"]["verification"]["passed"])

    def test_bounds(self):
        for value in ("0", "17", "-1", "two", "", "1.5", "99999999999999999999"):
            with self.subTest(value):
                self.refused(self.run_tiny("--pipeline", value), USAGE, f'--pipeline "{value}"', "1 to 16")
                self.refused(self.run_tiny("--in-flight", value), USAGE, f'--in-flight "{value}"', "1 to 16")

    def test_planning_for_requests_that_are_not_there(self):
        self.refused(self.run_tiny("--in-flight", "2"), USAGE, "in_flight 2", "no requests in flight")
        self.refused(self.run_tiny("--in-flight", "2", "--no-graph"), USAGE, "in_flight 2", "without no_graph")
        self.refused(self.run_tiny("--in-flight", "2", "--ablate"), USAGE, "--ablate", "--in-flight 2")
        found, _ = self.measured("--pipeline", "2", "--in-flight", "1", "--policy", "sequential")
        self.assertEqual(found["sequential"]["planned_for"], 1)

    def test_what_a_plan_from_a_file_was_chosen_for_is_not_known(self):
        self.accepted(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential", "--json", "plan.json", "--quiet"))
        found, _ = self.measured("--pipeline", "2", "--plan", "plan.json")
        self.assertIsNone(found["sequential"]["planned_for"])

    def test_arenas_beyond_the_memory_limit(self):
        """What was measured before is told, and recorded."""
        found, _ = self.measured("--pipeline", "1", "--policy", "sequential")
        limit = 2 * found["sequential"]["arena_bytes"]
        code, out, err = self.run_tiny("--pipeline", "3", "--memory-limit", limit, "--policy", "sequential", "--quiet",
                                       "--json", "out.json")
        self.assertEqual(code, BAD_INPUT, err)
        for text in ("--pipeline: sequential: 3 requests in flight", limit, "the memory limit; 2 fit"):
            self.assertIn(str(text), err)
        self.assertIn("sequential", out)
        self.assertNotIn("J/image", out)
        record = json.loads((self.folder / "out.json").read_text())
        self.assertNotIn("pipeline", record["policies"][0])

    def test_a_simulated_device(self):
        file = ROOT / "tests/data/profiles/h100-f16-b1.jsonl.gz"
        self.refused(self.execute("run", ROOT / "models/googlenet.json", "--dtype", "f16", "--device", f"sim:{file}",
                                  "--pipeline", "2"), USAGE, "computes no numbers", "--pipeline")

    def test_help(self):
        code, out, _ = self.execute("run", "--help")
        self.assertEqual(code, OK)
        self.assertIn("--batch 8 --pipeline 4", out)


if __name__ == "__main__":
    harness.main()
