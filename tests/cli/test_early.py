"""Plans that say which launches may not begin early, on a device where nothing does: a simulated one."""
import json

import harness
from harness import BAD_INPUT, ROOT, CommandTest

RECORDED = ROOT / "tests" / "data" / "profiles" / "h100-f16-b1.jsonl.gz"


class Early(CommandTest):
    def sim(self, command, *args):
        return self.execute(command, ROOT / "models" / "googlenet.json", "--dtype", "f16", "--batch", 1,
                            "--device", f"sim:{RECORDED}", *args)

    def setUp(self):
        super().setUp()
        self.accepted(self.sim("plan", "--policy", "streams", "--json", "a.json"))
        self.plan = json.loads((self.folder / "a.json").read_text())

    def write(self, name, early):
        tasks = [{**task, "early": early} if i == 3 else task for i, task in enumerate(self.plan["tasks"])]
        (self.folder / name).write_text(json.dumps({**self.plan, "tasks": tasks}))

    def test_it_is_taken_and_changes_no_prediction(self):
        self.write("late.json", False)
        predicted = []
        for name in ("a.json", "late.json"):
            self.accepted(self.sim("run", "--plan", name, "--json", "run.json"))
            predicted.append(json.loads((self.folder / "run.json").read_text())["policies"][-1]["predicted_us"])
        self.assertEqual(predicted[0], predicted[1])

    def test_differences_are_told(self):
        self.write("late.json", False)
        status, out, _ = self.execute("plan", "--diff", "a.json", "late.json")
        self.assertEqual(status, 1)
        self.assertIn(f"task {self.plan['tasks'][3]['name']}: early true -> false", out)
        self.assertIn("early beginnings 1", out)

    def test_what_is_no_answer_is_refused(self):
        self.write("bad.json", "yes")
        self.refused(self.sim("run", "--plan", "bad.json"), BAD_INPUT, "$.tasks[3].early",
                     "found a string, wanted true or false")


if __name__ == "__main__":
    harness.main()
