"""Measurements as files that travel, and profiles that were interrupted: `profile --export`,
`--import` and `--resume`, on the CPU."""
import gzip
import json
import os
import re
import resource

import harness
from harness import BAD_INPUT, USAGE, CommandTest


class Transfer(CommandTest):
    def profile(self, *args):
        return self.execute("profile", "--device", "cpu", *args)

    def test_export_and_import(self):
        self.accepted(self.profile("--export", "a.jsonl.gz"))
        self.accepted(self.profile("--export", "b.jsonl"))
        text = (self.folder / "b.jsonl").read_bytes()
        self.assertEqual(gzip.decompress((self.folder / "a.jsonl.gz").read_bytes()), text)
        self.accepted(self.execute("cache", "clear"))
        code, _, err = self.run_tiny("--frozen")
        self.assertEqual(code, BAD_INPUT)
        _, err = self.accepted(self.profile("--import", "a.jsonl.gz"))
        self.assertIn(f"{len(text.splitlines())} lines of it were news", err)
        self.accepted(self.run_tiny("--frozen"))
        self.accepted(self.profile("--export", "c.jsonl"))
        self.assertEqual((self.folder / "c.jsonl").read_bytes(), text)
        _, err = self.accepted(self.profile("--import", "b.jsonl"))
        self.assertIn("0 lines", err)

    def test_import_then_model_then_export(self):
        self.accepted(self.profile(self.model(), "--policy", "streams", "--export", "a.jsonl"))
        self.accepted(self.execute("cache", "clear"))
        out, _ = self.accepted(self.profile(self.model(), "--policy", "streams", "--frozen",
                                            "--import", "a.jsonl", "--export", "b.jsonl"))
        self.assertIn(" 0 candidates measured", out)
        self.assertTrue((self.folder / "b.jsonl").exists())

    def test_another_device(self):
        self.accepted(self.profile("--export", "a.jsonl"))
        text = (self.folder / "a.jsonl").read_text()
        identity = json.loads(text.splitlines()[0])["device"]
        path = self.file("other.jsonl", text.replace(json.dumps(identity), '"that GPU"'))
        self.refused(self.profile("--import", path), BAD_INPUT, path, "that GPU", identity)

    def test_files_that_are_refused(self):
        self.refused(self.profile("--import", "none.jsonl"), harness.FAILURE, "none.jsonl")
        path = self.file("text.jsonl", "hello\n")
        self.refused(self.profile("--import", path), BAD_INPUT, path, "convsched.profile/1")
        path = self.file("broken.gz", b"\x1f\x8b\x08\x00broken")
        self.refused(self.profile("--import", path), BAD_INPUT, path)
        self.accepted(self.execute("cache", "clear"))
        self.refused(self.profile("--export", "x.jsonl"), BAD_INPUT, "nothing is measured")
        self.assertFalse((self.folder / "x.jsonl").exists())

    def test_compressed_in_several_pieces(self):
        self.accepted(self.profile("--export", "a.jsonl"))
        lines = (self.folder / "a.jsonl").read_bytes().splitlines(keepends=True)
        pieces = [gzip.compress(b"".join(lines[i::2])) for i in range(2)]
        path = self.file("two.gz", b"".join(pieces))
        _, err = self.accepted(self.profile("--cache", self.folder / "other", "--import", path))
        self.assertIn(f"{len(lines)} lines of it were news", err)
        path = self.file("trailing.gz", pieces[0] + b"more")
        self.refused(self.profile("--import", path), BAD_INPUT, path, "4 bytes behind its end")

    def test_export_over_the_database(self):
        path = next((self.folder / "cache").rglob("profile-*.jsonl"))
        with path.open("a") as file:
            file.write("damaged\n")
        text = path.read_bytes()
        result = self.profile("--export", path, "--quiet")
        self.assertEqual(result[0], USAGE, result[2])
        self.assertIn("the profile database itself", result[2])
        self.assertEqual(path.read_bytes(), text)

    def test_size_limit_of_the_shell(self):
        """`ulimit -f` ends nothing halfway: a write that fails is a message, and leaves no rest."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        self.refused(self.execute("profile", "--device", "cpu", "--export", "a.jsonl",
                                  preexec_fn=limit), harness.FAILURE, "a.jsonl", "File too large")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["cache"])

    def test_database_that_is_a_pipe(self):
        path = next((self.folder / "cache").rglob("profile-*.jsonl"))
        path.unlink()
        os.mkfifo(path)
        _, _, err = self.profile("--export", "x.jsonl")
        self.assertIn("wanted a file", err)

    def test_names_that_are_empty(self):
        for option in ("--import", "--export", "--cache", "--json"):
            self.refused(self.profile(self.model(), option, ""), USAGE, option, "wanted a name")

    def test_files_that_cannot_be_written(self):
        """Found out before anything is measured."""
        self.accepted(self.execute("cache", "clear"))
        for option in ("--export", "--json"):
            self.refused(self.profile(self.model(), option, "none/x.jsonl"), harness.FAILURE,
                         "none/x.jsonl")
        self.assertEqual(list((self.folder / "cache").rglob("*.jsonl")), [])

    def test_damaged_measurements(self):
        """They are misses: measured again once, the damaged lines kept."""
        self.accepted(self.profile(self.model(), "--policy", "sequential"))
        path = next((self.folder / "cache").rglob("profile-*.jsonl"))
        lines = path.read_bytes().splitlines(keepends=True)
        op = json.dumps(json.loads(lines[0])["op"]).encode()
        damaged = b"".join(line.replace(b'"cold_us":', b'"cold_us":-') if op in line else line
                           for line in lines)
        path.write_bytes(damaged)
        out, err = self.accepted(self.profile(self.model(), "--policy", "sequential"))
        self.assertIn("damaged (line", err)
        self.assertNotIn(" 0 candidates measured", out)
        self.assertTrue(path.read_bytes().startswith(damaged))
        out, _ = self.accepted(self.profile(self.model(), "--policy", "sequential", "--frozen"))
        self.assertIn(" 0 candidates measured", out)

    def test_cache_of_another_folder(self):
        self.accepted(self.profile("--export", "a.jsonl"))
        other = self.folder / "other"
        self.accepted(self.profile("--cache", other, "--import", "a.jsonl"))
        self.accepted(self.run_tiny("--cache", other, "--frozen"))

    def test_wrong_use(self):
        self.refused(self.profile(), USAGE, "no model", "--import", "--export")
        self.refused(self.profile("--export", "x", "--json", "-"), USAGE, "json")
        self.refused(self.profile(self.model(), "--resume", "--refresh"), USAGE, "--refresh")
        self.refused(self.run_tiny("--resume"), USAGE, "resume")


class Resume(CommandTest):
    cold = True

    def profile(self, *args):
        return self.execute("profile", self.model(), "--device", "cpu", "--policy", "sequential",
                            *args)

    def test_resume(self):
        out, err = self.accepted(self.profile("--resume"))
        self.assertIn("nothing to resume", err)
        count = re.search(r"f32: (\d+) operations \(0 from the cache\)", out)
        self.assertTrue(count, out)
        out, err = self.accepted(self.profile("--resume"))
        self.assertIn("resumes: ", err)
        self.assertIn(" 0 were interrupted", err)
        self.assertIn("f32: {0} operations ({0} from the cache)".format(count[1]), out)
        self.assertIn(" 0 candidates measured", out)
        # An interrupted profile has candidates of an operation, and not the line that ends it.
        path = next((self.folder / "cache").rglob("profile-*.jsonl"))
        lines = path.read_text().splitlines(keepends=True)
        op = next(json.loads(line)["op"] for line in lines if '"complete":' in line)
        path.write_text("".join(line for line in lines
                                if '"complete":' not in line or json.loads(line)["op"] != op))
        out, err = self.accepted(self.profile("--resume"))
        self.assertIn(" 1 were interrupted", err)
        self.assertNotIn(" 0 candidates measured", out)
        _, err = self.accepted(self.profile("--resume"))
        self.assertIn(" 0 were interrupted", err)


if __name__ == "__main__":
    harness.main()
