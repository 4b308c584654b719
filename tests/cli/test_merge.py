"""Plans with merged launches, of a simulated device: a recorded profile in which every convolution has a further
candidate that merges."""
import gzip
import json

import harness
from harness import BAD_INPUT, ROOT, CommandTest

RECORDED = ROOT / "tests" / "data" / "profiles" / "h100-f16-b1.jsonl.gz"
ID = "cuda.test.v1"


def with_merging(lines):
    """The lines, and of every convolution its fastest candidate again, which merges, without a workspace, and is 2% slower."""
    fastest, kernels = {}, {}
    for line in lines:
        yield line
        record = json.loads(line)
        op = record.get("op", "")
        if "kernels" in record:
            kernels[op, record["kernels"]["candidate"]] = record
        measured = record.get("measured", {})
        if not op.startswith("Conv ") or "cold_us" not in measured:
            continue
        if op not in fastest or measured["cold_us"] < fastest[op]["measured"]["cold_us"]:
            fastest[op] = record
    for op, record in fastest.items():
        told = kernels.get((op, record["candidate"]["id"]))
        record["candidate"].update(id=ID, family="cuda.test", merges=True, workspace_bytes=0)
        for time in ("cold_us", "warm_us", "p10_us", "p90_us"):
            record["measured"][time] *= 1.02
        yield json.dumps(record) + "\n"
        if told:
            told["kernels"]["candidate"] = ID
            yield json.dumps(told) + "\n"


class Merge(CommandTest):
    cold = True

    def setUp(self):
        super().setUp()
        with gzip.open(RECORDED, "rt") as recorded:
            (self.folder / "merging.jsonl").write_text("".join(with_merging(recorded)))

    def sim(self, command, *args, device=None):
        return self.execute(command, ROOT / "models" / "googlenet.json", "--dtype", "f16", "--batch", 1,
                            "--device", device or f"sim:{self.folder / 'merging.jsonl'}", *args)

    def plan(self, name, *args):
        self.accepted(self.sim("plan", "--json", name, *args))
        return json.loads((self.folder / name).read_text())

    def test_coselect_merges_where_it_gains(self):
        plan = self.plan("a.json", "--policy", "coselect", "--streams", 2)
        position = {task["name"]: i for i, task in enumerate(plan["tasks"])}
        members = [task for task in plan["tasks"] if "merged" in task]
        self.assertGreater(len(members), 8)
        for task in members:
            leader = plan["tasks"][position[task["merged"]]]
            self.assertNotIn("merged", leader)
            self.assertEqual((task["stream"], task["candidate"]["id"], task["waits"]), (leader["stream"], ID, []))
            self.assertEqual(leader["candidate"]["id"], ID)
            self.assertTrue(task["candidate"]["merges"])
            self.assertEqual((task["start_us"], task["end_us"]), (leader["start_us"], leader["end_us"]))
        without = self.plan("b.json", "--policy", "coselect", "--streams", 2, "--device", f"sim:{RECORDED}")
        self.assertLess(plan["predicted_us"], without["predicted_us"])

    def test_ios_merges_on_one_stream(self):
        plan = self.plan("a.json", "--policy", "ios", "--streams", 1)
        self.assertTrue(any("merged" in task for task in plan["tasks"]))
        sequential = self.plan("b.json", "--policy", "sequential")
        self.assertLess(plan["predicted_us"], sequential["predicted_us"])

    def test_it_is_told(self):
        plan = self.plan("a.json", "--policy", "coselect")
        member = next(task for task in plan["tasks"] if "merged" in task)
        told = f"{ID}  merged with {member['merged']}"
        self.assertIn(told, self.accepted(self.sim("plan", "--policy", "coselect"))[0])
        out, _ = self.accepted(self.sim("plan", "--policy", "coselect", "--explain"))
        self.assertIn(told, out)
        self.plan("b.json", "--policy", "streams")
        _, out, _ = self.execute("plan", "--diff", "a.json", "b.json")
        self.assertIn(f"merged {member['merged']} -> null", out)
        self.assertIn("merged launches", out)

    def test_the_schedule_takes_what_the_plan_says(self):
        predicted = self.plan("plan.json", "--policy", "coselect")["predicted_us"]
        self.accepted(self.sim("run", "--plan", "plan.json", "--json", "run.json"))
        rows = json.loads((self.folder / "run.json").read_text())["policies"]
        self.assertAlmostEqual(rows[-1]["predicted_us"], predicted, places=3)

    def test_what_cannot_be_is_refused(self):
        plan = self.plan("plan.json", "--policy", "coselect")
        position = next(i for i, task in enumerate(plan["tasks"]) if "merged" in task)
        for change, wanted in (({"merged": "nobody"}, "wanted a task launched earlier"),
                               ({"priority": 1}, "wanted a task of the same priority"),
                               ({"waits": [plan["tasks"][0]["name"]]}, "leaves its waits to the leader")):
            tasks = list(plan["tasks"])
            tasks[position] = {**tasks[position], **change}
            (self.folder / "bad.json").write_text(json.dumps({**plan, "tasks": tasks}))
            self.refused(self.sim("run", "--plan", "bad.json"), BAD_INPUT, f"$.tasks[{position}].merged", wanted)
        for parts, wanted in (([104, 32], "part 1 has 32 units where 28 of the 132"), ([100, 32], "in steps of 8")):
            split = {"parts": parts, "streams": [0] * plan["streams"]}
            (self.folder / "bad.json").write_text(json.dumps({**plan, "split": split}))
            self.refused(self.sim("run", "--plan", "bad.json"), BAD_INPUT, "$.split.parts", wanted)


if __name__ == "__main__":
    harness.main()
