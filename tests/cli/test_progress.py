"""The line of progress on a terminal: that it is there, fits, and mixes with nothing else."""
import re
import tempfile

import harness
from harness import OK, ROOT, CommandTest
from terminal import Terminal, screen

LINE = re.compile(r"\r([^\r\n\x1b]*)\x1b\[K")


class Progress(CommandTest):
    cold = True

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="convsched-cli-progress-")
        cls.addClassCleanup(cls.shared.cleanup)

    def on_terminal(self, *args, columns=80, stdout=None, **env):
        terminal = Terminal([harness.COMMAND, *args], self.folder, dict(self.env, TERM="xterm", **env), columns, stdout)
        self.addCleanup(terminal.close)
        self.assertTrue(terminal.read(300), "does not end")
        self.assertEqual(terminal.code, OK, terminal.written)
        return terminal.written

    def run_squeezenet(self, *args, **more):
        """Measures what the tests before it have not."""
        return self.on_terminal("run", ROOT / "models/squeezenet1_1.json", "--device", "cpu", "--samples", "5", *args,
                                XDG_CACHE_HOME=self.shared.name, **more)

    def test_a_run(self):
        """Stages with bars, within the terminal's width, and gone when the table is printed."""
        for columns, stages in ((100, {"profiling", "verification"}), (40, {"verification"})):
            with self.subTest(columns):  # the second has its measurements from the first
                written = self.run_squeezenet(columns=columns)
                lines = [line for line in LINE.findall(written.decode()) if line]
                self.assertGreater(len(lines), 2)
                self.assertLess(max(map(len, lines)), columns)
                self.assertLessEqual(stages, {re.split("  ", line)[0] for line in lines})
                self.assertTrue(any(re.search(r"\d+%  \d+/\d+ \w+", line) for line in lines), lines)
                self.assertEqual(any("[-" in line or "[#" in line for line in lines), columns >= 60, lines)
                shown, column = screen(written, 1000)
                self.assertEqual(column, 0)
                self.assertFalse([line for line in shown if "%  " in line and "/" in line], shown)
                self.assertTrue(any("sequential" in line for line in shown), shown)

    def test_a_trace(self):
        """Samples and traced runs are counted, and nothing of it is left beside what is printed."""
        written = self.on_terminal("trace", ROOT / "models/squeezenet1_1.json", "--device", "cpu", "--policy", "sequential",
                                   "--samples", "100", "--runs", "100", columns=100, XDG_CACHE_HOME=self.shared.name)
        lines = [line for line in LINE.findall(written.decode()) if line]
        for stage, counted in (("sampling", r"\d+/100 samples"), ("tracing", r"\d+/100 runs")):
            shown = [line for line in lines if line.startswith(stage)]
            self.assertTrue(shown, lines)
            for line in shown:
                self.assertRegex(line, counted)
        shown, column = screen(written, 1000)
        self.assertEqual(([line for line in shown if "%  " in line], column), ([], 0))
        self.assertTrue(any("open it at https://ui.perfetto.dev" in line for line in shown), shown)

    def test_messages_begin_on_a_line_of_their_own(self):
        shown, _ = screen(self.run_squeezenet("--verbose"), 1000)
        messages = [line for line in shown if "convsched:" in line]
        self.assertGreater(len(messages), 5)
        for line in messages:
            self.assertRegex(line, r"^\[ *\d+\.\d+\] convsched: ")

    def test_results_elsewhere(self):
        """stdout into a file has the JSON alone, and the terminal nothing in the end."""
        with open(self.folder / "out.json", "w+b") as out:
            written = self.run_squeezenet("--json", "-", stdout=out)
        self.assertTrue((self.folder / "out.json").read_text().startswith("{"))
        shown, column = screen(written, 1000)
        self.assertEqual((shown, column), ([""], 0))

    def test_where_there_is_none(self):
        model = self.model()
        for args, env in ((("--quiet",), {}), ((), {"TERM": "dumb"}), ((), {"TERM": ""})):
            with self.subTest(args=args, env=env):
                self.env.update({"TERM": "xterm"}, **env)
                self.env["XDG_CACHE_HOME"] = str(self.folder / f"cache{len(args)}{env}")
                terminal = Terminal([harness.COMMAND, "profile", model, "--device", "cpu", *args], self.folder, self.env)
                self.addCleanup(terminal.close)
                self.assertTrue(terminal.read(120))
                self.assertEqual(terminal.code, OK)
                self.assertNotIn(b"\x1b", terminal.written)

    def test_no_terminal(self):
        """Nothing, and with --verbose a line a stage."""
        model = self.model()
        _, err = self.accepted(self.execute("profile", model, "--device", "cpu"))
        self.assertEqual([line for line in err.splitlines() if "warning: " not in line], [])
        _, err = self.accepted(self.execute("profile", model, "--device", "cpu", "--refresh", "--verbose"))
        self.assertRegex(err, r"(?m)^\[ *\d+\.\d+\] convsched: profiling: \d+ operations$")
        self.assertNotIn("\r", err)
        for args, stages in ((("trace", "--samples", "7", "--runs", "3"), ("sampling: 7 samples", "tracing: 3 runs")),
                             (("run", "--samples", "7", "--overlap"), ("sampling: 7 samples", "tracing: 5 runs")),
                             (("report", "-o", "page.html", "--policy", "sequential"), ("tracing: 9 runs",))):
            with self.subTest(args[0]):
                _, err = self.accepted(self.execute(args[0], model, "--device", "cpu", "--verbose", *args[1:]))
                for stage in stages:
                    self.assertRegex(err, rf"(?m)^\[ *\d+\.\d+\] convsched: {stage}$")


if __name__ == "__main__":
    harness.main()
