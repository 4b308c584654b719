"""What the command prints and writes when all goes well."""
import json

import harness
from harness import FAILURE, ROOT, TINY_OUTPUT, USAGE, CommandTest, elements, npy, read_npy


class Run(CommandTest):
    def record(self, *args):
        path = self.folder / "record.json"
        self.accepted(self.run_tiny("--json", path, *args))
        return json.loads(path.read_text())

    def test_table_on_stdout_and_quiet_stderr(self):
        out, err = self.accepted(self.run_tiny("--quiet"))
        self.assertIn("sequential", out)
        self.assertEqual(err, "")

    def test_record(self):
        record = self.record("--policy", "streams", "--batch", "2")
        self.assertEqual(record["schema"], "convsched.run/1")
        self.assertEqual((record["model"], record["batch"], record["dtype"]), ("tiny", 2, "f32"))
        for key in ("commit", "command", "seed", "graph_hash", "device", "bounds", "timings_s"):
            self.assertIn(key, record)
        self.assertEqual(set(record["timings_s"]),
                         {"open", "load", "passes", "profile", "plan", "prepare", "upload", "upload_parts",
                          "first_run", "first_result", "verify"})
        parts = record["timings_s"]["upload_parts"]
        self.assertEqual(set(parts), {"buffers", "pack", "copy", "wait"})
        self.assertGreater(parts["pack"], 0)
        self.assertEqual((parts["buffers"], parts["copy"], parts["wait"]), (0, 0, 0))  # the CPU packs in place
        self.assertLessEqual(parts["pack"], record["timings_s"]["upload"])
        self.assertGreater(record["timings_s"]["verify"], 0)
        self.assertTrue(record["verification"]["passed"])
        policies = {p["name"]: p for p in record["policies"]}
        self.assertEqual(set(policies), {"sequential", "streams"})
        for policy in policies.values():
            latency = policy["latency_us"]
            self.assertGreaterEqual(len(latency["samples"]), 5)
            self.assertLessEqual(latency["p10"], latency["median"])
            self.assertLessEqual(latency["median"], latency["p90"])
            self.assertTrue(policy["verification"]["passed"])
            self.assertGreater(policy["arena_bytes"], 0)
            memory = policy["memory"]
            self.assertEqual(memory["plan"]["arena_bytes"], policy["arena_bytes"])
            self.assertEqual(memory["plan"]["workspace_bytes"], policy["workspace_bytes"])
            for key in ("arena_bytes", "workspace_bytes"):
                self.assertEqual(memory["concurrency_costs"][key], policy[key] - memory["sequential"][key])
            if policy["name"] == "sequential":
                self.assertEqual(memory["plan"], memory["sequential"])
        for bound in ("roofline_us", "critical_path_us", "area_us"):
            self.assertGreater(record["bounds"][bound], 0)
        self.assertEqual(policies["sequential"]["streams"], 1)
        ratio = (policies["sequential"]["latency_us"]["median"] /
                 policies["streams"]["latency_us"]["median"])
        self.assertAlmostEqual(policies["streams"]["speedup_vs_sequential"], ratio, delta=0.02 * ratio)

    def test_every_policy_runs_right(self):
        record = self.record("--policy", "all", "--search-seconds", "0.5")
        policies = {p["name"]: p for p in record["policies"]}
        self.assertEqual(set(policies), {"sequential", "streams", "opara", "ios", "coselect"})
        for policy in policies.values():
            self.assertTrue(policy["verification"]["passed"])
            self.assertIn("speedup_vs_sequential", policy)

    def test_no_verification_takes_no_time(self):
        record = self.record("--verify", "none")
        self.assertIsNone(record["verification"])
        self.assertIsNone(record["timings_s"]["verify"])

    def test_full_verification_checks_every_operation(self):
        record = self.record("--verify", "full")
        for policy in record["policies"]:
            verification = policy["verification"]
            self.assertLessEqual(verification["rel_l2"], 1e-5)
            self.assertIn(verification["worst_node"], ("conv1", "conv2", "relu1", "cat"))
            self.assertLessEqual(verification["worst_ratio"], 1)
            # The worst node's error is its ratio of its limit, and no node's error is larger than the largest.
            self.assertLessEqual(verification["worst_ratio"] * verification["tolerance"],
                                 max(verification["rel_l2"], verification["max_scaled"]) * (1 + 1e-6))
            self.assertNotIn("problem", verification)
        self.assertTrue(record["verification"]["passed"])

    def test_half_precision_is_named(self):
        out, err = self.accepted(self.run_tiny("--dtype", "f16"))
        self.assertRegex(out + err, "(?i)stor")


class Values(CommandTest):
    """Values that are known beforehand."""

    def test_relu_of_an_array(self):
        def only_relu(g):
            g["nodes"] = [{"name": "y", "op": "Relu", "inputs": ["x"]}]
            g["outputs"] = ["y"]

        values = [(i % 17 - 8) / 4 for i in range(3 * 8 * 8)]
        source = self.file("x.npy", npy((1, 3, 8, 8), values))
        self.accepted(self.run_tiny("--input", source, "--output", "y.npy", model=self.model(only_relu)))
        shape, found = read_npy(self.folder / "y.npy")
        self.assertEqual(shape, (1, 3, 8, 8))
        self.assertEqual(list(found), [max(v, 0.0) for v in values])

    def test_several_inputs_and_outputs(self):
        def pair(g):
            g["inputs"] = [{"name": "a", "shape": [1, 2]}, {"name": "a=b", "shape": [1, 2]}]
            g["nodes"] = [{"name": "sum", "op": "Add", "inputs": ["a", "a=b"]},
                          {"name": "difference", "op": "Sub", "inputs": ["a", "a=b"]}]
            g["outputs"] = ["sum", "difference"]
            g.pop("weights", None)

        model = self.model(pair)
        a, b = (self.file(name, npy((1, 2), values)) for name, values in (("a.npy", (1.0, 2.0)), ("b.npy", (0.5, 4.0))))
        inputs = ["--input", f"a={a}", "--input", f"a=b={b}"]
        self.accepted(self.run_tiny(*inputs, "--output", "sum=s.npy", "--output", "difference=d.npy", model=model))
        self.assertEqual(list(read_npy(self.folder / "s.npy")[1]), [1.5, 6.0])
        self.assertEqual(list(read_npy(self.folder / "d.npy")[1]), [0.5, -2.0])
        self.accepted(self.run_tiny(*inputs, "--output", "difference=only.npy", model=model))
        self.assertEqual(list(read_npy(self.folder / "only.npy")[1]), [0.5, -2.0])
        for args, told in ((["--input", a], ("2 of them", "NAME=FILE")), (["--output", "y.npy"], ("2 of them", "sum=y.npy")),
                           (["--input", f"a={a}"], ("a=b", "not given")), ([*inputs, "--input", f"a={b}"], ("twice",)),
                           (["--input", f"c={a}"], ("NAME=FILE",)), ([*inputs, "--output", f"sum={a}"], ("would replace",)),
                           (["--output", "sum=-"], ("wanted a file",)), (["--input", "a="], ("NAME=FILE",))):
            with self.subTest(args):
                self.refused(self.run_tiny(*args, model=model), USAGE, *told)
        self.refused(self.run_tiny(*inputs, "--output", "sum=nowhere/y.npy", model=model), FAILURE, "nowhere")
        self.assertFalse((self.folder / "y.npy").exists())

    def output(self, *args):
        self.accepted(self.run_tiny("--output", "y.npy", *args))
        shape, values = read_npy(self.folder / "y.npy")
        self.assertEqual(shape, TINY_OUTPUT)
        self.assertGreater(max(values), min(values))
        return values

    def test_seed(self):
        first = self.output("--seed", "3")
        self.assertEqual(first, self.output("--seed", "3"))
        self.assertNotEqual(first, self.output("--seed", "4"))

    def test_policies_agree(self):
        """Up to rounding: policies may pick different candidates."""
        sequential, streams = self.output("--policy", "sequential"), self.output("--policy", "streams")
        self.assertLess(max(abs(a - b) for a, b in zip(sequential, streams)), 1e-5)

    def test_generated_weights(self):
        without = self.output("--seed", "5")
        self.accepted(self.execute("generate-weights", self.model(), "--seed", "5", "--output",
                                   "w.safetensors"))
        self.assertEqual(without, self.output("--seed", "5", "--weights", "w.safetensors"))

    def test_dump(self):
        self.accepted(self.run_tiny("--dump", "relu1"))
        dumped = [p for p in self.folder.glob("*relu1*") if p.suffix == ".npy"]
        self.assertEqual(len(dumped), 1)
        shape, values = read_npy(dumped[0])
        self.assertEqual(elements(shape), 4 * 8 * 8)
        self.assertGreaterEqual(min(values), 0.0)


    def test_node_names_with_equals(self):
        """The longest name of a node is meant; ids and file names may hold a '=', too."""
        def change(g):
            g["nodes"][0]["name"] = "a"
            g["nodes"][1].update(name="a=b", inputs=["a"])
            g["nodes"][3]["inputs"] = ["a=b", "conv2"]

        model = self.model(change)
        self.accepted(self.run_tiny("--dump", "a=b", "--dump", "a=b=c=d.npy", "--dump", "a=e.npy",
                                    "--dump", "conv2=x=y.npy", model=model))
        relu, other = read_npy(self.folder / "a=b.npy"), read_npy(self.folder / "c=d.npy")
        self.assertEqual(relu, other)
        self.assertGreaterEqual(min(relu[1]), 0.0)
        before = read_npy(self.folder / "e.npy")
        self.assertLess(min(before[1]), 0.0)
        self.assertEqual(relu[1], tuple(max(v, 0.0) for v in before[1]))
        self.assertEqual(read_npy(self.folder / "x=y.npy")[0], (1, 4, 8, 8))
        self.refused(self.run_tiny("--dump", "b=c", model=model), harness.BAD_INPUT, '"b"')

    def test_pins_of_node_names_with_equals(self):
        def change(g):
            g["nodes"][0]["name"] = "a"
            g["nodes"][2]["name"] = "a=b"
            g["nodes"][1]["inputs"] = ["a"]
            g["nodes"][3]["inputs"] = ["relu1", "a=b"]

        model = self.model(change)
        self.refused(self.run_tiny("--algorithm", "a=b=c=d", model=model), harness.BAD_INPUT,
                     'node a=b: no candidate "c=d"')
        self.refused(self.run_tiny("--algorithm", "a=c=d", model=model), harness.BAD_INPUT,
                     'node a: no candidate "c=d"')


class OtherCommands(CommandTest):
    def test_inspect(self):
        out, _ = self.accepted(self.execute("inspect", ROOT / "models/googlenet.json"))
        self.assertIn("googlenet", out)

    def test_plan_table(self):
        out, _ = self.accepted(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential"))
        table, summary = out.split("\n\n")
        rows = [line.split() for line in table.splitlines()[1:]]
        # Where the measured layouts differ, copies stand between the convolutions and the concat.
        names = [row[5] for row in rows]
        self.assertEqual({name for name in names if not name.startswith("copy:")}, {"conv1", "conv2"})
        copied = {name.split(":")[1] for name in names if name.startswith("copy:")}
        self.assertLessEqual(copied, {"x", "conv1", "relu1", "conv2", "cat"})
        self.assertRegex(summary, r"Predicted: [0-9.]+ us on 1 streams\.")
        self.assertRegex(summary, r"their area \(an estimate\) [0-9.]+ us\.")
        self.assertRegex(summary, r"arena [0-9.]+ [KM]iB \(\+0.0 MiB\), workspace at most ")

    def test_plan_is_reproducible(self):
        self.accepted(self.run_tiny("--policy", "streams"))
        plans = []
        for name in ("a.json", "b.json"):
            self.accepted(self.execute("plan", self.model(), "--device", "cpu", "--policy", "streams",
                                       "--frozen", "--json", name))
            plans.append((self.folder / name).read_bytes())
        self.assertEqual(plans[0], plans[1])
        self.assertEqual(json.loads(plans[0])["schema"], "convsched.plan/1")

    def test_profile_then_frozen_run(self):
        self.accepted(self.execute("profile", self.model(), "--device", "cpu"))
        self.accepted(self.run_tiny("--frozen"))


if __name__ == "__main__":
    harness.main()
