"""bench/interrupts.py: a case of it on the CPU, what it finds wrong with a command that does not end as it should, and the
table of the committed record.

CS_INTERRUPT_S: seconds within which the command has to end (default: the 0.5 that are promised of a machine with nothing
else to do)."""
import json
import os
import pathlib
import subprocess
import sys
import time

import harness
from harness import INTERRUPTED, OK, ROOT, USAGE, WRONG, CommandTest

sys.path.insert(0, str(ROOT / "bench"))
import interrupts

RECORD = ROOT / "bench/results/verification/2026-11-29-h200-interrupts.jsonl"
WITHIN_S = float(os.environ.get("CS_INTERRUPT_S", "0.5"))

# Lives for 0.8 s after Ctrl-C and leaves a process, an unfinished file and half a line.
BAD = """#!{python}
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"])
pathlib.Path("{folder}/child").write_text(str(child.pid))
cache = pathlib.Path(sys.argv[sys.argv.index("--cache") + 1])
(cache / "out.json.tmp.1").touch()
(cache / "profile.jsonl").write_text('{{"op":"a","complete":{{}}}}\\n{{"op":"b","cand')
signal.signal(signal.SIGINT, lambda *_: None)
signal.pause()
time.sleep(0.8)
sys.exit(1)
"""


def cells(row):
    return [cell.strip() for cell in row.strip("|\n").split("|")]


def runs(pid):
    """Whether it does; one that has ended and that nobody has waited for does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Interrupts(CommandTest):
    cold = True

    def script(self, *args):
        process = subprocess.run([sys.executable, ROOT / "bench/interrupts.py", *map(str, args)], cwd=self.folder, env=self.env,
                                 capture_output=True, text=True, timeout=120, check=False)
        return process.returncode, process.stdout, process.stderr

    def measure(self, *more, command=None):
        """The case `profile` on the CPU."""
        library = pathlib.Path(harness.COMMAND).parent / "libconvsched.so"
        if not library.exists():
            self.skipTest(f"no {library}")
        return self.script("--cases", "profile", "--device", "cpu", "--library", library, "--command", command or harness.COMMAND,
                           "--commit", "abc", "--out", self.folder / "out.jsonl", *more)

    def record(self):
        found = [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_profile(self):
        code, out, err = self.measure("--within-s", WITHIN_S)
        self.assertEqual(code, OK, out + err)
        record = self.record()
        self.assertEqual((record["schema"], record["commit"], record["case"]), ("convsched.interrupts/1", "abc", "profile"))
        self.assertEqual((record["device"]["backend"], record["press"]["after_s"]), ("cpu", 1.5))
        self.assertLessEqual(record["took_s"], WITHIN_S)
        self.assertGreaterEqual(record["pressed_s"], 1.5)
        self.assertEqual((record["code"], record["hung"], record["processes_left"], record["unfinished_files"]),
                         (INTERRUPTED, False, False, []))
        self.assertIn("interrupted", record["last"])
        self.assertEqual(record["database"]["damaged"], 0)
        self.assertIn("1 ended within", out)

    def test_what_is_wrong_is_told(self):
        path = pathlib.Path(self.file("bad", BAD.format(python=sys.executable, folder=self.folder)))
        path.chmod(0o755)
        code, out, err = self.measure(command=path)
        self.assertEqual(code, WRONG, err)
        record = self.record()
        self.assertGreater(record["took_s"], 0.7)
        self.assertEqual((record["code"], record["processes_left"], record["told_s"]), (1, True, None))
        self.assertEqual(record["database"], {"lines": 2, "damaged": 1, "complete": 1, "again": 0, "known": 0})
        problems = cells(out.splitlines()[2])[-1]
        for part in ("longer than 0.5 s", "exit code 1, wanted 130", "left a process", "out.json.tmp.1", "1 damaged"):
            self.assertIn(part, problems)
        child, until = int((self.folder / "child").read_text()), time.monotonic() + 10
        while runs(child) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertFalse(runs(child))

    def test_a_deadline(self):
        """A case that could not end by it is not begun, which is told and no success."""
        code, out, err = self.measure("--deadline-s", "3")
        self.assertEqual((code, (self.folder / "out.jsonl").read_text()), (WRONG, ""), err)
        self.assertIn("left out, no time: profile", err)

    def test_what_cannot_be_begun(self):
        for more, told in ((("--command", "nowhere"), "nowhere"), (("--out", "nowhere/x"), "nowhere/x"),
                           (("--library", "nowhere.so"), "nowhere.so"), (("--cases", "profil"), "found profil, wanted")):
            with self.subTest(more):
                code, out, err = self.measure(*more)
                self.assertEqual((code, out), (USAGE, ""), err)
                self.assertIn(told, err)

    def test_measured_again(self):
        """Candidates of operations that a case before completed, and no others."""
        def line(candidate, op="a"):
            return json.dumps({"op": op, "candidate": {"id": candidate}, "measured": {}}) + "\n"

        path = self.folder / "p.jsonl"
        path.write_text(line("old") + '{"op": "a", "complete": {}}\n')  # by another program: not looked at
        database = interrupts.Database(self.folder)
        for text, wanted in ((line("x") + line("y", "b") + '{"op": "a", "complete": {}}\n', (3, 1, 0, 0)),
                             (line("x") + line("new") + line("y", "b"), (3, 0, 1, 1)), ("", (0, 0, 0, 1))):
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)
            told = database.take()
            self.assertEqual((told["lines"], told["complete"], told["again"], told["known"]), wanted)
            self.assertEqual(told["damaged"], 0)


class Table(CommandTest):
    cold = True
    script = Interrupts.script

    def table(self, path):
        """Rows below the head, and what follows them."""
        code, out, err = self.script("--table", path)
        self.assertEqual((code, err), (OK, ""))
        rows, _, rest = out.partition("\n\n")
        head, _, *rows = map(cells, rows.splitlines())
        return [dict(zip(head, row, strict=True)) for row in rows], rest

    def test_of_the_record(self):
        found = [json.loads(line) for line in RECORD.read_text().splitlines()]
        rows, rest = self.table(RECORD)
        self.assertEqual([(row["case"], float(row["ended after, s"]), row["exit code"]) for row in rows],
                         [(record["case"], record["took_s"], str(record["code"])) for record in found])
        self.assertEqual({row["problems"] for row in rows}, {"none"})
        self.assertEqual(rows[2]["Ctrl-C"], "1.5 s into search")
        self.assertIn(f"{len(found)} ended within 0.5 s, the slowest after {max(r['took_s'] for r in found):.3f} s", rest)
        self.assertIn("Not recorded: run profiling again; float64 reference; huge.", rest)

    def test_of_what_is_wrong(self):
        record = json.loads(RECORD.read_text().splitlines()[0])
        database = record["database"]
        for change, told in (({}, "none"), ({"took_s": 0.501}, "longer than 0.5 s"),
                             ({"took_s": 20, "hung": True, "code": None}, "hung"),
                             ({"code": -9}, "exit code -9, wanted 130"), ({"code": 0}, "ended by itself"),
                             ({"took_s": None, "code": 0}, "ended by itself"), ({"processes_left": True}, "left a process"),
                             ({"unfinished_files": ["a.tmp.1"]}, "left a.tmp.1"),
                             ({"database": {**database, "damaged": 2}}, "2 damaged lines"),
                             ({"database": {**database, "again": 3}}, "3 candidates measured again")):
            with self.subTest(change):
                rows, _ = self.table(self.file("changed.jsonl", json.dumps({**record, **change})))
                self.assertEqual([row["problems"] for row in rows], [told])


if __name__ == "__main__":
    harness.main()
