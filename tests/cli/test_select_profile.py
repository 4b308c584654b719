"""`tools/select_profile.py`: what tests replay, cut out of an exported profile."""
import gzip
import json
import re
import subprocess
import sys

import harness
from harness import CommandTest

RECORDED = harness.ROOT / "tests" / "data" / "profiles" / "h100-f16-b1.jsonl.gz"


class SelectProfile(CommandTest):
    def select(self, source, *args):
        """Exit code, message and lines of the selection."""
        out = self.folder / "selected.jsonl.gz"
        out.unlink(missing_ok=True)
        done = subprocess.run([sys.executable, harness.ROOT / "tools" / "select_profile.py", source, out, *args],
                              cwd=self.folder, capture_output=True, text=True, timeout=60)
        lines = gzip.decompress(out.read_bytes()).decode().splitlines() if out.exists() else []
        return done.returncode, done.stderr, lines

    def exported(self, *args):
        path = self.folder / "all.jsonl"
        self.accepted(self.execute("profile", self.model(), "--device", "cpu", "--policy", "sequential", *args,
                                   "--export", path))
        return path, path.read_text().splitlines()

    def test_lines_of_dtypes_and_batches(self):
        path, lines = self.exported("--dtype", "f32,f16", "--batch", "1,2")
        code, err, found = self.select(path, "--dtypes", "f32", "--batches", "2")
        self.assertEqual((code, err), (0, f"{len(found)} lines\n"))
        ops = [json.loads(line)["op"] for line in lines]
        kept = [op for op in ops if op == "device" or re.match(r"\w+ f32 [xa]=2x", op)]
        self.assertTrue(any(" f32 x=1x" in op for op in ops) and any(" f16 x=2x" in op for op in ops))
        self.assertEqual([json.loads(line)["op"] for line in found], kept)
        # As a profile it has the same measurements.
        out, _ = self.accepted(self.execute("report", self.model(), "--table", "workspace", "--batch", "2",
                                            "--profile", "selected.jsonl.gz", "--format", "csv"))
        wanted, _ = self.accepted(self.execute("report", self.model(), "--table", "workspace", "--batch", "2",
                                               "--profile", path, "--format", "csv"))
        self.assertEqual(out, wanted)

    def test_payloads_are_left_out(self):
        path, lines = self.exported()
        at = next(i for i, line in enumerate(lines) if "candidate" in json.loads(line))
        line = json.loads(lines[at])
        line["candidate"]["payload"] = "long"
        path.write_text("\n".join(lines[:at] + [json.dumps(line)] + lines[at + 1:]) + "\n")
        _, _, found = self.select(path, "--dtypes", "f32", "--batches", "1")
        self.assertNotIn("payload", "".join(found))
        self.assertIn(line["candidate"]["id"], "".join(found))

    def test_the_recorded_ones_are_selections(self):
        with gzip.open(RECORDED, "rt") as file:
            lines = file.read().splitlines()
        code, _, found = self.select(RECORDED, "--dtypes", "f16", "--batches", "1")
        self.assertEqual(code, 0)
        self.assertEqual(found, lines)

    def test_what_is_refused(self):
        path, lines = self.exported()
        appended = self.file("cache.jsonl", "\n".join(lines + lines[:1]) + "\n")
        code, err, found = self.select(appended, "--dtypes", "f32", "--batches", "1")
        self.assertEqual((code, found), (1, []))
        self.assertIn(f"cache.jsonl:{len(lines) + 1}: not sorted", err)
        self.assertIn("profile --export", err)
        code, err, found = self.select(path, "--dtypes", "bf16", "--batches", "7")
        self.assertEqual((code, found), (1, []))
        self.assertIn("nothing of bf16 at batch 7", err)


if __name__ == "__main__":
    harness.main()
