"""Wrong use of the command: exit 2, a message, nothing on stdout; and help and version."""
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

    def test_batches(self):
        model = self.model()
        for value in ("-1", "1.5", "x", "", "99999999999999999999"):
            with self.subTest(value):
                self.wrong_use("run", model, "--batch", value)

    def test_batch_that_overflows(self):
        code, out, err = self.run_tiny("--batch", str(1 << 60))
        self.assertIn(code, (USAGE, harness.BAD_INPUT, harness.FAILURE), err)
        self.assertEqual(out, "")

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
