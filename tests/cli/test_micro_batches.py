"""`--micro-batches`: batches divided into parts, by any policy; plan files that say so; what is no number of parts."""
import json

import harness
from harness import BAD_INPUT, USAGE, CommandTest


def chain(graph):
    """conv1, its Relu and a convolution of it, then a pool and a product."""
    del graph["nodes"][2:]
    graph["nodes"] += [
        {"name": "conv2", "op": "Conv", "inputs": ["relu1"], "attrs": {"out_channels": 4, "kernel_shape": [3, 3]}},
        {"name": "pool", "op": "GlobalAveragePool", "inputs": ["conv2"]},
        {"name": "flat", "op": "Flatten", "inputs": ["pool"], "attrs": {"axis": 1}},
        {"name": "fc", "op": "Gemm", "inputs": ["flat"], "attrs": {"out_features": 3}}]
    graph["outputs"] = ["fc"]


class MicroBatches(CommandTest):
    def run_chain(self, *args, command="run", change=chain):
        return self.execute(command, self.model(change), "--device", "cpu", *args)

    def record(self, *args, change=chain):
        self.accepted(self.run_chain("--samples", 3, "--json", "r.json", *args, change=change))
        return json.loads((self.folder / "r.json").read_text())

    def policies(self, record):
        return {policy["name"]: policy for policy in record["policies"]}

    def test_parts(self):
        """7 entries in 3 parts; the baseline is whole; everything is verified as ever."""
        found = self.policies(self.record("--batch", 7, "--policy", "streams", "--micro-batches", 3))
        self.assertEqual(found["streams"]["micro_batches"]["divided"],
                         [{"parts": [3, 2, 2], "nodes": ["conv1", "conv2", "pool", "fc"]}])
        self.assertTrue(found["streams"]["verification"]["passed"])
        self.assertNotIn("micro_batches", found["sequential"])
        self.assertLess(len(found["sequential"]["tasks"]), len(found["streams"]["tasks"]))

    def test_a_batch_that_cannot_be_divided_is_told(self):
        _, err = self.accepted(self.run_chain("--batch", 1, "--policy", "streams", "--micro-batches", 4, command="plan"))
        self.assertRegex(err, r"micro-batches: none of [0-9]+ nodes is divided: the batch is 1")

    def test_memory_is_told_beside_the_same_parts(self):
        given = ("--batch", 4, "--policy", "streams")
        said = "Memory of streams, and what that is beside sequential with the same candidates"
        out, _ = self.accepted(self.run_chain(*given, "--micro-batches", 2, command="plan"))
        self.assertIn(f"{said} and micro-batches: arena", out)
        out, _ = self.accepted(self.run_chain(*given, command="plan"))
        self.assertIn(f"{said}: arena", out)

    def test_frozen_needs_the_baseline(self):
        given = ("--device", "cpu", "--batch", 4, "--cache", "measured")
        frozen = (*given, "--micro-batches", 2, "--policy", "streams", "--frozen", "--samples", 1)
        model = self.model(chain)
        self.accepted(self.execute("profile", model, *given, "--micro-batches", 2, "--quiet"))
        self.refused(self.execute("run", model, *frozen, "--quiet"), BAD_INPUT, "conv1: not measured")
        self.accepted(self.execute("profile", model, *given, "--quiet"))
        self.accepted(self.execute("run", model, *frozen))

    def test_every_policy(self):
        for policy in ("sequential", "streams", "opara", "ios", "coselect"):
            with self.subTest(policy):
                found = self.policies(self.record("--batch", 4, "--policy", policy, "--micro-batches", 2,
                                                  "--search-seconds", "0.3"))
                self.assertEqual(found[policy]["micro_batches"]["divided"][0]["parts"], [2, 2])
                self.assertTrue(found[policy]["verification"]["passed"])

    def test_branches(self):
        """Both branches of the tiny graph, whose parts lie in the concat."""
        found = self.policies(self.record("--batch", 5, "--policy", "streams", "--micro-batches", 2, change=None))
        self.assertEqual(found["streams"]["micro_batches"]["divided"], [{"parts": [3, 2], "nodes": ["conv1", "conv2"]}])
        self.assertTrue(found["streams"]["verification"]["passed"])

    def test_batch_of_one(self):
        found = self.policies(self.record("--policy", "streams", "--micro-batches", 4))
        self.assertNotIn("micro_batches", found["streams"])
        found = self.policies(self.record("--batch", 2, "--policy", "streams", "--micro-batches", 4))
        self.assertEqual(found["streams"]["micro_batches"]["divided"][0]["parts"], [1, 1])

    def test_plan(self):
        """A plan file has the division, and is run as it was made; the explanation tells of it."""
        given = ("--batch", 7, "--policy", "streams")
        self.accepted(self.run_chain(*given, "--micro-batches", 3, "--json", "p.json", command="plan"))
        plan = json.loads((self.folder / "p.json").read_text())
        self.assertEqual(plan["micro_batches"], [{"parts": [3, 2, 2], "nodes": ["conv1", "conv2", "pool", "fc"]}])
        self.assertIn("conv2/2", [task["name"] for task in plan["tasks"]])
        found = self.policies(self.record("--batch", 7, "--plan", "p.json"))
        self.assertEqual(found["streams"]["micro_batches"]["divided"], plan["micro_batches"])
        self.assertTrue(found["streams"]["verification"]["passed"])
        self.refused(self.run_chain("--batch", 7, "--plan", "p.json", "--micro-batches", 3), USAGE, "--micro-batches")
        self.refused(self.run_chain("--batch", 8, "--plan", "p.json"), BAD_INPUT, "$.batch")
        out, _ = self.accepted(self.run_chain(*given, "--micro-batches", 3, "--explain", command="plan"))
        self.assertIn("Micro-batches of streams: conv1 … fc (4 nodes) in 3 + 2 x 2.", out)
        plan["micro_batches"][0]["nodes"][0] = "nobody"
        (self.folder / "bad.json").write_text(json.dumps(plan))
        self.refused(self.run_chain("--batch", 7, "--plan", "bad.json"), BAD_INPUT, "bad.json",
                     "$.micro_batches[0].nodes[0]", "nobody")

    def test_choice(self):
        """Whatever coselect finds, it says what it compared, and `none` asks for nothing of it."""
        given = ("--batch", 16, "--policy", "coselect", "--search-seconds", "0.3")
        out, _ = self.accepted(self.run_chain("--samples", 3, "--json", "r.json", *given, "--workspace-limit", "4K"))
        found = self.policies(json.loads((self.folder / "r.json").read_text()))["coselect"]
        told = found["micro_batches"]
        for trial in told["trials"]:
            self.assertGreater(trial["undivided_us"], trial["expected_us"])
            self.assertAlmostEqual(sum(trial["gain_us"].values()), trial["undivided_us"] - trial["expected_us"], 3)
            if trial["taken"]:
                self.assertLess(trial["ratio"]["high"], 1)
        self.assertEqual(bool(told["divided"]), any(trial["taken"] for trial in told["trials"]))
        said = [line for line in out.splitlines() if line.startswith("Micro-batches of coselect: ")]
        self.assertEqual(len(said), 1)
        ratios = [trial["ratio"]["median"] for trial in told["trials"] if trial["ratio"]]
        if not told["trials"]:
            self.assertTrue(said[0].endswith("none; no parts of a batch promise to be faster."))
        elif not told["divided"] and ratios:
            self.assertIn(f"none; the best of {len(told['trials'])} divided plans takes {min(ratios):.3f} times as long", said[0])
        self.assertTrue(found["verification"]["passed"])
        found = self.policies(self.record(*given, "--micro-batches", "none"))["coselect"]
        self.assertNotIn("micro_batches", found)

    def test_pins_name_nodes(self):
        plan = ("--batch", 4, "--policy", "sequential", "--micro-batches", 2, "--json", "p.json")
        self.accepted(self.run_chain(*plan, command="plan"))
        tasks = {task["name"]: task["candidate"]["id"]
                 for task in json.loads((self.folder / "p.json").read_text())["tasks"]}
        pinned = tasks["conv1/0"]
        self.accepted(self.run_chain(*plan, "--algorithm", f"conv1={pinned}", command="plan"))
        again = {task["name"]: task["candidate"]["id"]
                 for task in json.loads((self.folder / "p.json").read_text())["tasks"]}
        self.assertEqual((again["conv1/0"], again["conv1/1"]), (pinned, pinned))

    def test_what_is_no_number_of_parts(self):
        for value in ("", "0", "1", "-2", "1025", "2.5", "many", "2x", "99999999999999999999"):
            with self.subTest(value):
                self.refused(self.run_chain(f"--micro-batches={value}"), USAGE, "micro-batches",
                             "auto, none or a number of parts, 2 to 1024")


if __name__ == "__main__":
    harness.main()
