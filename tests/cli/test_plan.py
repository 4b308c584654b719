"""What `plan` tells of plans: explanations, the latency/memory front, differences of two files."""
import csv
import io
import json

import harness
from harness import BAD_INPUT, OK, ROOT, USAGE, WRONG, CommandTest


class PlanTest(CommandTest):
    def plan(self, *args):
        return self.execute("plan", self.model(), "--device", "cpu", *args)

    def written(self, *args):
        """The JSON that plan writes with these options."""
        out, _ = self.accepted(self.plan("--json", "-", *args))
        return json.loads(out)


class Explain(PlanTest):
    def test_json(self):
        told = self.written("--policy", "streams", "--explain")
        plan = self.written("--policy", "streams")
        self.assertEqual(told["schema"], "convsched.explanation/1")
        self.assertEqual((told["model"], told["batch"], told["dtype"], told["policy"]),
                         ("tiny", 1, "f32", "streams"))
        self.assertEqual(told["predicted_us"], plan["predicted_us"])
        self.assertEqual(told["memory"]["plan"], {"arena_bytes": plan["arena_bytes"],
                                                  "workspace_bytes": plan["workspace_peak"]})
        self.assertGreater(told["bounds"]["area_us"], 0)
        tasks = {task["name"]: task for block in told["blocks"] for task in block["tasks"]}
        self.assertEqual({name: (task["candidate"], task["stream"]) for name, task in tasks.items()},
                         {task["name"]: (task["candidate"]["id"], task["stream"]) for task in plan["tasks"]})
        # Both convolutions read the input, and nothing else orders them.
        if plan["streams"] > 1:
            pairs = [pair for block in told["blocks"] for pair in block["pairs"]]
            self.assertIn(["conv1", "conv2"], [sorted(pair["tasks"]) for pair in pairs])
            for pair in pairs:
                self.assertIn(pair["limiter"], ("cores", "none"))
                self.assertEqual(pair["most_us"], min(tasks[name]["alone_us"] for name in pair["tasks"]))

    def test_text(self):
        out, _ = self.accepted(self.plan("--policy", "streams", "--explain"))
        for text in ("tiny  batch 1  f32  streams", "Predicted: ", "their area (an estimate)",
                     "conv1", "conv2", "alone us"):
            self.assertIn(text, out)
        self.assertEqual(out, self.accepted(self.plan("--policy", "streams", "--explain"))[0])


class Tradeoff(PlanTest):
    def test_every_row_is_a_plan(self):
        front = self.written("--policy", "streams", "--tradeoff")
        self.assertEqual((front["schema"], front["table"]), ("convsched.report/1", "tradeoff"))
        self.assertEqual(front["summary"]["policy"], "streams")
        rows = front["rows"]
        # By the times measured here a plan with less may be as fast as the one without a limit.
        if rows[0]["memory_limit"] is not None:
            free = self.written("--policy", "streams")
            self.assertLess(rows[0]["arena_bytes"], free["arena_bytes"])
            self.assertLessEqual(rows[0]["predicted_us"], free["predicted_us"] + 1e-4)
        for above, row in zip(rows, rows[1:]):
            self.assertLess(row["arena_bytes"], above["arena_bytes"])
            self.assertGreater(row["predicted_us"], above["predicted_us"])
        for row in rows:
            limit = [] if row["memory_limit"] is None else ["--memory-limit", row["memory_limit"]]
            plan = self.written("--policy", "streams", *limit)
            self.assertEqual((plan["arena_bytes"], plan["workspace_peak"], plan["streams"]),
                             (row["arena_bytes"], row["workspace_bytes"], row["streams"]))
            self.assertAlmostEqual(plan["predicted_us"], row["predicted_us"], places=4)

    def test_forms(self):
        rows = self.written("--policy", "streams", "--tradeoff")["rows"]
        out, _ = self.accepted(self.plan("--policy", "streams", "--tradeoff", "--format", "csv"))
        table = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual([int(row["arena_bytes"]) for row in table], [row["arena_bytes"] for row in rows])
        out, _ = self.accepted(self.plan("--policy", "streams", "--tradeoff"))
        self.assertIn("tradeoff: tiny, batch 1, f32, streams on", out)
        out, _ = self.accepted(self.plan("--policy", "streams", "--tradeoff", "--format", "md"))
        self.assertIn("| limit", out)


class Recorded(CommandTest):
    """GoogLeNet at batch 32 on a recorded H100."""

    def written(self, *args):
        profile = ROOT / "tests/data/profiles/h100-f16-b32.jsonl.gz"
        out, _ = self.accepted(self.execute("plan", ROOT / "models/googlenet.json", "--dtype", "f16", "--batch", "32",
                                            "--device", f"sim:{profile}", "--json", "-", "--quiet", *args))
        return json.loads(out)

    def test_explanation_names_resources(self):
        told = self.written("--policy", "coselect", "--explain")
        self.assertGreater(told["bounds"]["area_us"], told["bounds"]["critical_path_us"])
        pairs = [pair for block in told["blocks"] for pair in block["pairs"]]
        limiters = {pair["limiter"] for pair in pairs}
        self.assertLessEqual(limiters, {"registers", "shared", "threads", "blocks", "none"})
        self.assertGreaterEqual(len(limiters), 3)
        chosen = {task["name"]: task for block in told["blocks"] for task in block["tasks"]}
        for pair in pairs:
            for other in pair["alternatives"]:
                self.assertIn(other["task"], pair["tasks"])
                self.assertNotEqual(other["candidate"], chosen[other["task"]]["candidate"])

    def test_less_memory_costs_time(self):
        """Every policy has a front; a row's limit gives its plan."""
        for policy in ("streams", "coselect"):
            rows = self.written("--policy", policy, "--tradeoff")["rows"]
            self.assertGreaterEqual(len(rows), 2)
            self.assertLess(rows[-1]["arena_bytes"], 0.8 * rows[0]["arena_bytes"])
            row = rows[-1]
            plan = self.written("--policy", policy, "--memory-limit", row["memory_limit"])
            self.assertEqual((plan["arena_bytes"], plan["workspace_peak"], plan["streams"]),
                             (row["arena_bytes"], row["workspace_bytes"], row["streams"]))


class Diff(PlanTest):
    def setUp(self):
        super().setUp()
        for name, policy in (("a.json", "streams"), ("b.json", "sequential")):
            self.accepted(self.plan("--policy", policy, "--json", name))

    def diff(self, *args):
        return self.execute("plan", "--diff", *args)

    def test_same(self):
        out, _ = self.accepted(self.diff("a.json", "a.json"))
        self.assertEqual(out, "The plans are the same.\n")

    def test_different(self):
        code, out, err = self.diff("a.json", "b.json")
        self.assertEqual(code, WRONG)
        self.assertIn("policy: streams -> sequential\n", out)
        self.assertIn("a.json and b.json: the plans differ", err)
        code, out, _ = self.diff("a.json", "b.json", "--json", "-")
        self.assertEqual(code, WRONG)
        told = json.loads(out)
        self.assertEqual((told["schema"], told["same"]), ("convsched.plan-diff/1", False))
        self.assertIn({"member": "policy", "a": "streams", "b": "sequential"}, told["head"])
        names = [{task["name"] for task in json.loads((self.folder / name).read_text())["tasks"]}
                 for name in ("a.json", "b.json")]
        self.assertEqual((set(told["only_a"]), set(told["only_b"])), (names[0] - names[1], names[1] - names[0]))

    def test_candidates(self):
        plan = json.loads((self.folder / "a.json").read_text())
        task = plan["tasks"][0]
        was, task["candidate"]["id"] = task["candidate"]["id"], "other"
        code, out, _ = self.diff("a.json", self.file("c.json", plan))
        self.assertEqual(code, WRONG)
        self.assertEqual(out.splitlines(), [f"task {task['name']}: candidate {was} -> other",
                                            "Different in both: candidates 1"])

    def test_bad_input(self):
        self.refused(self.diff("a.json", "nothing.json"), harness.FAILURE, "nothing.json")
        self.refused(self.diff("a.json", self.model()), BAD_INPUT, "tiny.json", "convsched.graph/1",
                     "convsched.plan/1")
        self.refused(self.diff(self.file("torn.json", '{"schema":'), "a.json"), BAD_INPUT, "torn.json", "line 1")


class Use(PlanTest):
    def test_wrong_use(self):
        plan = self.file("a.json", "{}")
        self.refused(self.execute("plan", "--diff", plan), USAGE, "two plan files, 1 given")
        self.refused(self.execute("plan", plan, plan), USAGE, "one model, 2 given")
        self.refused(self.plan("--explain", "--tradeoff"), USAGE, "--explain and --tradeoff")
        self.refused(self.plan("--format", "csv"), USAGE, "--format goes with --tradeoff")

    def test_help(self):
        code, out, _ = self.execute("plan", "--help")
        self.assertEqual(code, OK)
        for option in ("--diff", "--explain", "--tradeoff", "--memory-limit"):
            self.assertIn(option, out)


if __name__ == "__main__":
    harness.main()
