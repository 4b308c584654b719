"""The folder of measurements as the command shows it, and measurements as files that travel."""
import gzip
import json

import harness
from harness import BAD_INPUT, USAGE, CommandTest


class Cache(CommandTest):
    def files(self):
        return sorted((self.folder / "cache").rglob("profile-*.jsonl*"))

    def listed(self):
        out, _ = self.accepted(self.execute("cache", "list", "--json", "-"))
        return json.loads(out)

    def test_path(self):
        folder = str(self.folder / "cache/convsched/v1")
        for args in ([], ["path"]):
            out, _ = self.accepted(self.execute("cache", *args))
            self.assertEqual(out.strip(), folder)

    def test_list(self):
        found = self.listed()
        lines = [json.loads(line) for line in self.files()[0].read_text().splitlines()]
        records = {(line["op"], line["candidate"]["id"]) for line in lines if "candidate" in line}
        self.assertEqual(len(found["files"]), 1)
        file = found["files"][0]
        self.assertEqual(file["records"], len(records))
        self.assertEqual(file["operations"], len({op for op, _ in records}))
        self.assertEqual(file["bytes"], self.files()[0].stat().st_size)
        self.assertEqual(file["identity"], lines[0]["device"])
        self.assertEqual((found["cap_bytes"], found["bytes"]), (1 << 30, file["bytes"]))
        out, _ = self.accepted(self.execute("cache", "list"))
        self.assertIn(f" {len(records)} ", out)
        self.assertIn("1 profile,", out)

    def test_list_of_nothing(self):
        out, _ = self.accepted(self.execute("cache", "list", "--cache", self.folder / "none"))
        self.assertIn("0 profiles", out)

    def test_list_of_a_file_that_says_nothing(self):
        self.files()[0].write_text("garbage\n")
        self.assertIn("no line of convsched.profile/1", self.listed()["files"][0]["error"])

    def test_clear(self):
        out, _ = self.accepted(self.execute("cache", "clear", "--older-than", "1"))
        self.assertIn("0 profiles removed", out)
        self.assertTrue(self.files())
        out, _ = self.accepted(self.execute("cache", "clear"))
        self.assertIn("1 profile removed", out)
        self.assertEqual(self.files(), [])

    def test_wrong_use(self):
        self.refused(self.execute("cache", "shrink"), USAGE, "shrink", "path, list or clear")
        self.refused(self.execute("cache", "list", "--older-than", "2"), USAGE, "older-than")
        self.refused(self.execute("cache", "clear", "--json", "-"), USAGE, "json")
        self.refused(self.execute("cache", "clear", "--older-than", "0"), USAGE, "0")

    def test_limit(self):
        other = self.files()[0].with_name("profile-0000000000000000.jsonl")
        other.write_text(self.files()[0].read_text().replace('"device":"cpu', '"device":"gpu'))
        self.env["CONVSCHED_CACHE_CAP"] = str(self.files()[0].stat().st_size)
        _, err = self.accepted(self.run_tiny("--frozen"))
        self.assertIn("1 profile of other devices", err)
        self.assertFalse(other.exists())
        self.env["CONVSCHED_CACHE_CAP"] = "plenty"
        self.refused(self.run_tiny("--frozen"), USAGE, "CONVSCHED_CACHE_CAP", "plenty")


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
        self.accepted(self.execute("cache", "clear"))
        self.refused(self.profile("--export", "x.jsonl"), BAD_INPUT, "nothing is measured")
        self.assertFalse((self.folder / "x.jsonl").exists())

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
        _, err = self.accepted(self.profile("--resume"))
        self.assertIn("nothing to resume", err)
        out, err = self.accepted(self.profile("--resume"))
        self.assertIn("resumes: ", err)
        self.assertIn(" 0 were interrupted", err)
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
