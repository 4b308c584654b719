"""`convsched profile --export` and `--import`, on the CPU."""
import gzip
import json

import harness
from harness import BAD_INPUT, FAILURE, USAGE, CommandTest


class ProfileFiles(CommandTest):
    def profile(self, *args):
        return self.execute("profile", "--device", "cpu", *args)

    def test_export_then_import(self):
        first, second = self.folder / "first.jsonl.gz", self.folder / "second.jsonl"
        self.accepted(self.profile("--export", first))
        lines = gzip.decompress(first.read_bytes()).decode().splitlines()
        self.assertTrue(any("candidate" in json.loads(line) for line in lines))
        other = self.folder / "other"
        out, err = self.accepted(self.profile("--cache", other, "--import", first))
        self.assertIn(f"{len(lines)} lines", err)
        # What was imported is enough to plan without measuring, and is exported as it came.
        self.accepted(self.run_tiny("--cache", other, "--frozen"))
        self.accepted(self.profile("--cache", other, "--export", second))
        self.assertEqual(second.read_text().splitlines(), lines)

    def test_another_device(self):
        path = self.folder / "one.jsonl"
        self.accepted(self.profile("--export", path))
        changed = path.read_text().replace('"device":"', '"device":"another ')
        self.refused(self.profile("--import", self.file("changed.jsonl", changed)), BAD_INPUT,
                     "another ", "this device")

    def test_errors(self):
        self.refused(self.profile(), USAGE, "no model given")
        self.refused(self.profile("--import", self.folder / "none.jsonl"), FAILURE, "none.jsonl")
        self.refused(self.profile("--import", self.file("text", "no profile\n")), BAD_INPUT, "text")
        broken = self.file("broken.gz", b"\x1f\x8b\x08\x00broken")
        self.refused(self.profile("--import", broken), BAD_INPUT, "broken.gz")
        self.refused(self.profile("--cache", self.folder / "empty", "--export", self.folder / "e"),
                     BAD_INPUT, "nothing is measured")


if __name__ == "__main__":
    harness.main()
