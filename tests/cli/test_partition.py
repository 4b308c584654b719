"""`--partition`: which splits of the device there are, in plans of a simulated one; and priorities in them."""
import json

import harness
from harness import BAD_INPUT, ROOT, USAGE, CommandTest

PROFILES = ROOT / "tests" / "data" / "profiles"


class Partition(CommandTest):
    cold = True

    def sim(self, command, *args, dtype="f16", batch=1):
        return self.execute(command, ROOT / "models" / "googlenet.json", "--dtype", dtype, "--batch", batch,
                            "--device", f"sim:{PROFILES / f'h100-{dtype}-b{batch}.jsonl.gz'}", *args)

    def plan(self, name, *args, **case):
        self.accepted(self.sim("plan", "--policy", "coselect", "--json", name, *args, **case))
        return json.loads((self.folder / name).read_text())

    def test_only_what_is_allowed_is_planned(self):
        """Whatever is chosen, it is of the split that was named, and no slower than without."""
        for dtype, batch in (("f16", 1), ("f16", 32), ("tf32", 32)):
            with self.subTest(dtype=dtype, batch=batch):
                none = self.plan("none.json", "--partition", "none", dtype=dtype, batch=batch)
                self.assertNotIn("split", none)
                named = self.plan("named.json", "--partition", "16,116", dtype=dtype, batch=batch)
                self.assertIn(named.get("split", {}).get("parts"), (None, [16, 116]))
                free = self.plan("free.json", dtype=dtype, batch=batch)
                self.assertIn(free.get("split", {}).get("parts"), (None, [32, 100], [64, 68]))
                for plan in (named, free):
                    self.assertLess(plan["predicted_us"], 1.03 * none["predicted_us"])

    def test_impossible_parts(self):
        for parts, says in (("20,112", "part 0 has 20 units"), ("4,128", "8 or more, in steps of 8"),
                            ("128,8", "4 of the 132"), ("8,8,8,120", "where 108 of the 132"),
                            ("16,115", "or all that are left")):
            for command in ("plan", "run"):
                with self.subTest(parts=parts, command=command):
                    self.refused(self.sim(command, "--partition", parts), BAD_INPUT, parts, says)

    def test_what_is_no_partition(self):
        for text in ("", "32", "32,", "a,b", "32;100", "0,132", "none,none", "-8,140"):
            with self.subTest(text=text):
                self.refused(self.sim("plan", f"--partition={text}"), USAGE, "wanted")
        self.refused(self.sim("plan", "--partition", "8,8,8,8,100"), USAGE, "wanted none or 2 to 4")

    def test_a_cpu_has_no_parts(self):
        """Said the same of an option and of a plan's file, of however many SMs."""
        model = self.model()
        self.accepted(self.execute("plan", model, "--device", "cpu", "--policy", "streams", "--json", "plan.json"))
        plan = json.loads((self.folder / "plan.json").read_text())
        for parts in ([1, 1], [32, 100]):
            text = ",".join(map(str, parts))
            plan["split"] = {"parts": parts, "streams": [0] * plan["streams"]}
            split = self.file("split.json", plan)
            for args in (("plan", model, "--partition", text), ("run", model, "--plan", split),
                         ("trace", model, "--plan", split)):
                with self.subTest(args[0], parts=parts):
                    result = self.execute(*args, "--device", "cpu")
                    self.refused(result, BAD_INPUT, f"partition {text}: ", "cannot be split; wanted: no partition")
                    self.assertEqual("split.json: $.split.parts: " in result[2], "--plan" in args)
                    self.assertNotIn("SMs", result[2])

    def test_a_plan_file_has_its_own(self):
        plan = self.plan("plan.json")
        self.refused(self.sim("run", "--plan", "plan.json", "--partition", "none"), USAGE, "partition")
        plan["streams"] = max(plan["streams"], 1)
        plan["split"] = {"parts": [20, 112], "streams": [0] * plan["streams"]}
        (self.folder / "bad.json").write_text(json.dumps(plan))
        self.refused(self.sim("run", "--plan", "bad.json"), BAD_INPUT, "bad.json", "$.split.parts", "20 units")
        plan["split"]["parts"] = [16, 116]
        (self.folder / "good.json").write_text(json.dumps(plan))
        self.accepted(self.sim("run", "--plan", "good.json"))

    def test_a_record_tells_it(self):
        """As the plan's file does, and null where there is none; for a person, too."""
        plan = self.plan("plan.json", "--partition", "none", "--streams", 4)
        self.assertEqual(plan["streams"], 4)
        for streams, told in (([0, 1, None, 1], "16 SMs for stream 0; 116 SMs for streams 1 and 3; all SMs for stream 2."),
                              ([1] * 4, "16 SMs for no stream; 116 SMs for streams 0, 1, 2 and 3.")):
            plan["split"] = {"parts": [16, 116], "streams": streams}
            self.file("split.json", plan)
            self.accepted(self.sim("run", "--plan", "split.json", "--json", "run.json"))
            record = json.loads((self.folder / "run.json").read_text())
            self.assertEqual({policy["name"]: policy["split"] for policy in record["policies"]},
                             {"sequential": None, "coselect": plan["split"]})
            out, _ = self.accepted(self.sim("run", "--plan", "split.json"))
            self.assertIn(f"\ncoselect splits the device: {told}\n", out)
        for command in ("plan", "run"):
            out, _ = self.accepted(self.sim(command, "--partition", "none", "--policy", "coselect"))
            self.assertNotIn("splits the device", out)

    def test_explained(self):
        """Part and priority of every task are told."""
        self.accepted(self.sim("plan", "--policy", "coselect", "--explain", "--json", "e.json"))
        tasks = [task for block in json.loads((self.folder / "e.json").read_text())["blocks"] for task in block["tasks"]]
        plan = {task["name"]: task for task in self.plan("plan.json")["tasks"]}
        self.assertEqual([task["priority"] for task in tasks],
                         [plan[task["name"]].get("priority", 0) for task in tasks])
        for task in tasks:
            self.assertIn("part", task)


if __name__ == "__main__":
    harness.main()
