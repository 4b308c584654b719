"""Wrong use of the command: exit 2, a message, nothing on stdout; and help and version."""
import json

import os

import harness
from harness import OK, USAGE, CommandTest


class Usage(CommandTest):
    def wrong_use(self, *args, names=()):
        return self.refused(self.execute(*args), USAGE, *names)

    def test_commands(self):
        self.wrong_use()
        self.wrong_use("fly", names=["fly"])
        self.wrong_use("run")
        self.wrong_use("--no-such-option", names=["no-such-option"])

    def test_options(self):
        model = self.model()
        for option, value in {
                "--batch": "0", "--policy": "fastest", "--dtype": "f8", "--device": "tpu",
                "--streams": "-1", "--workspace-limit": "-5", "--seed": "abc",
                "--memory-limit": "lots", "--algorithm": "conv1", "--verify": "maybe"}.items():
            with self.subTest(option):
                self.wrong_use("run", model, option, value, names=[value])

    def test_profile(self):
        model = self.model()
        self.wrong_use("profile", model, "--depth", "deep", names=["deep"])
        self.wrong_use("run", model, "--corun", names=["corun"])
        code, out, err = self.execute("profile", model, "--device", "cpu", "--node", "nowhere")
        self.assertEqual((code, out), (harness.BAD_INPUT, ""))
        self.assertIn("nowhere", err)
        _, _, err = self.execute("profile", model, "--device", "cpu", "--node", "conf1")
        self.assertIn("near it: conv1", err)
        code, out, _ = self.execute("profile", model, "--device", "cpu", "--node", "conv?")
        self.assertEqual(code, 0)
        self.assertIn("conv1", out)
        self.assertIn("conv2", out)
        self.assertNotIn("cat ", out)

    def test_overlap(self):
        model = self.model()
        out, _ = self.accepted(self.execute("run", model, "--device", "cpu", "--overlap", "--samples", 3))
        self.assertIn("achieved in 5 runs", out)
        self.wrong_use("run", model, "--device", "cpu", "--overlap", "--batch", "1,2", names=["2 cases"])

    def test_batches(self):
        model = self.model()
        for value in ("-1", "1.5", "x", "", "99999999999999999999"):
            with self.subTest(value):
                self.wrong_use("run", model, "--batch", value)

    def test_bytes(self):
        """A unit without a number is none, as of an empty variable: never 0, which is no limit."""
        for option in ("--memory-limit", "--workspace-limit"):
            for value in ("M", "", "-1", "1.5M", "1T", " 1"):
                with self.subTest(option=option, value=value):
                    self.wrong_use("run", self.model(), option, value, names=[option, f'"{value}"'])

    def test_batch_that_overflows(self):
        code, out, err = self.run_tiny("--batch", str(1 << 60))
        self.assertIn(code, (USAGE, harness.BAD_INPUT, harness.FAILURE), err)
        self.assertEqual(out, "")

    def test_files_that_would_be_lost(self):
        model = self.model()
        plan = self.folder / "plan.json"
        self.accepted(self.execute("plan", model, "--device", "cpu", "--policy", "streams", "--json", plan))
        os.symlink(model, self.folder / "link.json")
        kept = {path: path.read_bytes() for path in self.folder.glob("*.json")}
        for args, told in ((("--json", "tiny.json"), f"would replace {model}, which is read"),
                           (("--json", "link.json"), f"would replace {model}"), (("--output", model), f"would replace {model}"),
                           (("--plan", "plan.json", "--json", "./plan.json"), "would replace --plan plan.json"),
                           (("--weights", "w.st", "--output", "w.st"), "would replace --weights w.st"),
                           (("--input", "x.npy", "--output", "x.npy"), "would replace --input x.npy"),
                           (("--json", "same", "--output", "same"), "--json same: is the file of --output"),
                           (("--output", "-"), "--output -: wanted a file")):
            with self.subTest(args):
                self.refused(self.run_tiny(*args, model=model), USAGE, told)
        self.refused(self.execute("generate-weights", model, "--output", model), USAGE, f"would replace {model}")
        self.assertEqual({path: path.read_bytes() for path in self.folder.glob("*.json")}, kept)
        self.accepted(self.run_tiny("--json", "/dev/null", "--output", "/dev/null", "--samples", "2", model=model))

    def test_missing_value(self):
        self.wrong_use("run", self.model(), "--batch")

    def test_unknown_option(self):
        self.wrong_use("run", self.model(), "--colour", names=["colour"])

    def test_pins(self):
        code, _, err = self.run_tiny("--algorithm", "nowhere=x")
        self.assertIn(code, (USAGE, harness.BAD_INPUT), err)
        self.assertIn("nowhere", err)
        code, _, err = self.run_tiny("--algorithm", "conv1=no_such_candidate")
        self.assertIn(code, (USAGE, harness.BAD_INPUT), err)
        self.assertIn("no_such_candidate", err)

    def plan(self, *args):
        """Candidates by task of the tiny graph's plan."""
        self.accepted(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential",
                                   "--json", "plan.json", *args))
        tasks = json.loads((self.folder / "plan.json").read_text())["tasks"]
        return {t["name"]: t["candidate"]["id"] for t in tasks}

    def test_names_that_do_not_exist_come_with_near_ones(self):
        chosen = self.plan()["conv1"]
        wrong = chosen.replace("jit", "jot") if "jit" in chosen else chosen[:-1]
        self.refused(self.run_tiny("--algorithm", "conf1=x"), harness.BAD_INPUT, "conf1", "near it: conv1")
        self.refused(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential",
                                  "--algorithm", f"conv1={wrong}x"), harness.BAD_INPUT, f"{wrong}x",
                     "near it: ", chosen)
        self.refused(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential",
                                  "--ban", f"{wrong}x"), harness.BAD_INPUT, f'ban "{wrong}x"', "near it: ",
                     chosen)

    def test_ban_and_pin(self):
        chosen = self.plan()["conv1"]
        other = self.plan("--ban", chosen)["conv1"]
        self.assertNotEqual(other, chosen)
        self.assertEqual(self.plan("--algorithm", f"conv1={other}")["conv1"], other)
        self.refused(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential",
                                  "--ban", other, "--algorithm", f"conv1={other}"),
                     harness.BAD_INPUT, "conv1", other, "banned")
        self.refused(self.execute("plan", self.model(), "--device", "cpu", "--policy", "sequential",
                                  "--algorithm", f"conv1={chosen}", "--algorithm", f"conv1={other}"),
                     USAGE, "conv1", chosen, other)

    def test_plan_file_goes_alone(self):
        self.plan()
        for option in (["--algorithm", "conv1=x"], ["--ban", "x"], ["--streams", "1"], ["--deterministic"]):
            with self.subTest(option[0]):
                self.refused(self.run_tiny("--plan", "plan.json", *option), USAGE, "plan.json", option[0])
        self.accepted(self.run_tiny("--plan", "plan.json", "--policy", "sequential"))

    def test_plan_file_is_run_without_the_profile(self):
        self.plan()
        self.env["XDG_CACHE_HOME"] = self.file("not-a-folder", "x")
        out, err = self.accepted(self.run_tiny("--plan", "plan.json", "--policy", "sequential"))
        self.assertNotIn("not-a-folder", err)
        self.assertIn("No bounds", out)


class Help(CommandTest):
    cold = True

    def test_help_and_version(self):
        for args in (["--help"], ["run", "--help"]):
            code, out, _ = self.execute(*args)
            self.assertEqual(code, OK)
            self.assertIn("convsched", out)
        code, out, _ = self.execute("--version")
        self.assertEqual(code, OK)
        self.assertRegex(out, r"\b0\.1\.0\b")

    def test_doctor(self):
        out, _ = self.accepted(self.execute("doctor"))
        for word in ("cpu", "cuda", "onednn"):
            self.assertIn(word, out)


if __name__ == "__main__":
    harness.main()
