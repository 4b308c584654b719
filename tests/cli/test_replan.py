"""Candidates of a plan's file, or of the profile, that are not there any more; the label of a plan's row."""
import json
import re

import harness
from harness import BAD_INPUT, OK, ROOT, USAGE, CommandTest

RECORDED = ROOT / "tests" / "data" / "profiles" / "h100-f16-b1.jsonl.gz"


class PlanFile(CommandTest):
    def plan(self, change=None, policy="streams"):
        """A plan of the tiny graph, changed."""
        self.accepted(self.execute("plan", self.model(), "--device", "cpu", "--policy", policy, "--json", "plan.json"))
        plan = json.loads((self.folder / "plan.json").read_text())
        if change:
            change(plan)
        self.file("plan.json", plan)
        return plan

    def names(self, *args):
        """What policies a run has, and what it says on stderr."""
        _, err = self.accepted(self.run_tiny("--plan", "plan.json", "--json", "run.json", *args))
        return [row["name"] for row in json.loads((self.folder / "run.json").read_text())["policies"]], err

    def test_the_row_is_the_plans_policy(self):
        self.plan(policy="opara")
        self.assertEqual(self.names(), (["sequential", "opara"], ""))
        for option, value in (("--search-seconds", "3"), ("--search-steps", "7")):
            self.refused(self.run_tiny("--plan", "plan.json", option, value), USAGE, "plan.json", f"goes without {option}")
        self.accepted(self.run_tiny("--plan", "plan.json", "--search-seconds", "0"))  # nothing of the baseline's, too
        self.refused(self.run_tiny("--plan", "plan.json", "--policy", "streams"), USAGE, "plan.json", "by opara",
                     "--policy streams")
        self.plan(policy="sequential")
        self.assertEqual(self.names()[0], ["sequential"])

    def without(self, names, id):
        """Tasks of those names get a candidate that nobody has."""
        def change(plan):
            for task in plan["tasks"]:
                if task["name"] in names:
                    task["candidate"]["id"] = id
        return self.plan(change, policy="opara")

    def test_unknown_candidates_are_planned_anew(self):
        for id in ("onednn:jit:no_such/t1", "onednn:jit:no_such", "cudnn.graph:eng10{2=1}"):
            with self.subTest(id):
                plan = self.without(("conv1", "conv2"), id)
                first = next(task["name"] for task in plan["tasks"] if task["candidate"]["id"] == id)
                names, err = self.names()
                self.assertEqual(names, ["sequential", "opara"])
                self.assertEqual(len(err.splitlines()), 1, err)
                for text in (f"plan.json: 2 of {len(plan['tasks'])} tasks", f"the first of them {first}, have", id,
                             "the plan is of oneDNN", "planning anew by opara"):
                    self.assertIn(text, err)
                record = json.loads((self.folder / "run.json").read_text())
                self.assertTrue(record["verification"]["passed"])
                self.assertIsNotNone(record["bounds"])

    def test_one_candidate(self):
        self.without(("conv2",), "onednn:jit:no_such/t1")
        _, err = self.names()
        self.assertIn("the first of them conv2, has a candidate", err)

    def test_frozen_is_an_error(self):
        self.without(("conv2",), "onednn:jit:no_such/t1")
        self.refused(self.run_tiny("--plan", "plan.json", "--frozen"), BAD_INPUT, "plan.json", "conv2",
                     "onednn:jit:no_such/t1", "oneDNN")
        self.refused(self.execute("inspect", self.model(), "--kernels", "--device", "cpu", "--plan", "plan.json",
                                  "--frozen"), BAD_INPUT, "conv2")

    def test_versions_of_another_library(self):
        """They are told; where all candidates are there the plan is run as it is."""
        def other(plan):
            plan["device"] = plan["device"].replace("|onednn ", "|onednn 1.2.3-")
        self.plan(other, policy="opara")
        self.assertEqual(self.names(), (["sequential", "opara"], ""))

        def gone(plan):
            other(plan)
            plan["tasks"][0]["candidate"]["id"] = "onednn:jit:no_such/t1"
        self.plan(gone, policy="opara")
        self.assertIn("the plan is of oneDNN 1.2.3-", self.names()[1])

    def test_other_errors_stay(self):
        def cores(plan):
            plan["device"] = plan["device"].replace("cores", "bores")

        def shape(plan):
            plan["batch"] = 3

        def damaged(plan):
            del plan["tasks"][0]["stream"]

        def workspace(plan):
            plan["tasks"][0]["candidate"]["notes"] = "x"
        for change in (cores, shape, damaged, workspace):
            with self.subTest(change.__name__):
                self.plan(change)
                self.refused(self.run_tiny("--plan", "plan.json"), BAD_INPUT, "plan.json")
        for name in ("", "all", "x"):
            with self.subTest(policy=name):
                self.plan(lambda plan: plan.update(policy=name))
                wanted = (BAD_INPUT, "plan.json", f'$.policy: found "{name}", wanted sequential, streams')
                self.refused(self.run_tiny("--plan", "plan.json"), *wanted)
                self.refused(self.execute("inspect", self.model(), "--kernels", "--device", "cpu", "--plan",
                                          "plan.json"), *wanted)
        self.file("plan.json", "no plan")
        self.refused(self.run_tiny("--plan", "plan.json"), BAD_INPUT, "plan.json")

    def test_less_workspace_than_the_candidate_wants(self):
        records = [json.loads(line) for path in (self.folder / "cache").rglob("*.jsonl")
                   for line in path.read_text().splitlines()]
        ids = {r["candidate"]["id"] for r in records if "candidate" in r and r["op"].startswith("Conv f32 x=1x3x8x8/")
               and " k=3x3 " in r["op"] and r["candidate"]["workspace_bytes"] > 0}
        code = next((code for id in sorted(ids) for code in [self.execute(
            "plan", self.model(), "--device", "cpu", "--algorithm", f"conv1={id}", "--json", "plan.json")[0]] if code == OK), None)
        if code is None:
            self.skipTest("no candidate of conv1 wants workspace here")
        plan = json.loads((self.folder / "plan.json").read_text())
        self.assertGreater(plan["workspace_peak"], 0)
        self.accepted(self.run_tiny("--plan", "plan.json"))
        for task in plan["tasks"]:
            task["candidate"]["workspace_bytes"] = 0
        self.file("plan.json", dict(plan, workspace_peak=0))
        self.refused(self.run_tiny("--plan", "plan.json"), BAD_INPUT, "plan.json", "bytes of workspace, planned 0")


class Profile(CommandTest):
    """Measurements of candidates that this program does not have, or not so."""

    def change(self, pattern, by):
        """How many places of the recorded measurements."""
        path, = (self.folder / "cache").rglob("profile-*.jsonl")
        text, n = re.subn(pattern, by, path.read_text())
        path.write_text(text)
        return n

    def measured_anew(self, *args):
        """Said once; what took its place is then known."""
        self.refused(self.run_tiny("--frozen", *args), BAD_INPUT, "not there as recorded", "frozen")
        _, err = self.accepted(self.run_tiny("--json", "run.json", *args))
        lines = [line for line in err.splitlines() if "warning" in line]
        self.assertEqual(len(lines), 1, err)
        record = json.loads((self.folder / "run.json").read_text())
        self.assertTrue(record["verification"]["passed"])
        _, err = self.accepted(self.run_tiny("--frozen", *args))
        self.assertNotIn("warning", err)
        return lines, record

    def test_unknown_implementations(self):
        self.assertGreater(self.change(r'"id":"onednn:', '"id":"onednn:gone_'), 0)
        lines, record = self.measured_anew("--policy", "sequential")
        self.assertIn("onednn:gone_", lines[0])
        self.assertGreater(record["measured"]["candidates"], 0)

    def test_ids_that_nobody_has(self):
        self.change(r'"id":"onednn:', '"id":"foonn:')
        self.measured_anew("--policy", "sequential")

    def test_every_policy(self):
        for policy in ("streams", "ios", "coselect", "opara"):
            with self.subTest(policy):
                self.setUp()
                args = ("--policy", policy, "--search-seconds", "0.2", "--streams", "2")
                self.accepted(self.run_tiny(*args))
                self.change(r'"id":"onednn:', '"id":"onednn:gone_')
                _, err = self.accepted(self.run_tiny(*args))
                self.assertIn("not there as recorded", err)
                _, err = self.accepted(self.run_tiny(*args))
                self.assertNotIn("warning", err)

    def test_less_workspace_than_it_takes(self):
        if self.change(r'"workspace_bytes":[1-9][0-9]*', '"workspace_bytes":0') == 0:
            self.skipTest("no candidate wants workspace here")
        code, _, err = self.run_tiny("--policy", "sequential")
        self.assertEqual(code, OK, err)

    def test_times_that_cannot_be(self):
        for name in ("cold_us", "warm_us"):
            with self.subTest(name):
                self.assertGreater(self.change(f'"{name}":[0-9.e+-]+', f'"{name}":0'), 0)
                _, err = self.accepted(self.run_tiny("--policy", "sequential"))
                self.assertIn("damaged", err)
                self.accepted(self.run_tiny("--policy", "sequential", "--frozen"))


class Recorded(CommandTest):
    """A plan for an H100 with an engine that its cuDNN does not have."""
    cold = True

    def test_engine(self):
        model = ROOT / "models" / "googlenet.json"
        sim = ("--dtype", "f16", "--device", f"sim:{RECORDED}")
        self.accepted(self.execute("plan", model, *sim, "--policy", "streams", "--json", "good.json"))
        plan = json.loads((self.folder / "good.json").read_text())
        task = next(task for task in plan["tasks"] if task["candidate"]["id"].startswith("cudnn.graph:"))
        task["candidate"]["id"] = "cudnn.graph:eng999{2=1}"
        found = plan["device"].split("cudnn=")[1].split(";")[0]
        plan["device"] = plan["device"].replace(f"cudnn={found}", "cudnn=9.1.0")
        self.file("plan.json", plan)
        _, err = self.accepted(self.execute("inspect", model, *sim, "--kernels", "--plan", "plan.json", "--json", "a"))
        self.assertIn(f"the plan is of cuDNN 9.1.0, installed is cuDNN {found}; planning anew by streams", err)
        self.accepted(self.execute("inspect", model, *sim, "--kernels", "--plan", "good.json", "--json", "b"))
        self.assertEqual(*([(kernel["task"], kernel["candidate"], kernel["stream"], kernel["kernel"])
                            for kernel in json.loads((self.folder / name).read_text())["kernels"]] for name in "ab"))
        self.refused(self.execute("run", model, *sim, "--plan", "plan.json", "--frozen"), BAD_INPUT, task["name"],
                     "cudnn.graph:eng999{2=1}", "cuDNN 9.1.0")


if __name__ == "__main__":
    harness.main()
