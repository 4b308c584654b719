"""The folder of measurements as the command shows it."""
import json

import harness
from harness import USAGE, CommandTest


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
        path = self.files()[0]
        record = next(line for line in map(json.loads, path.read_text().splitlines())
                      if "candidate" in line)
        kernel = {"name": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1],
                  "registers": 32, "static_shared": 0, "dynamic_shared": 0, "local_bytes": 0,
                  "blocks_per_unit": 2}
        line = {key: record[key] for key in ("schema", "method", "device", "op")}
        line["kernels"] = {"candidate": record["candidate"]["id"], "list": [kernel]}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        found = self.listed()
        lines = [json.loads(line) for line in self.files()[0].read_text().splitlines()]
        records = {(line["op"], line["candidate"]["id"]) for line in lines if "candidate" in line}
        self.assertEqual(len(found["files"]), 1)
        file = found["files"][0]
        self.assertEqual((file["records"], file["kernels"], file["coruns"]), (len(records), 1, 0))
        self.assertEqual(file["damaged"], 0)
        self.assertEqual(file["operations"], len({op for op, _ in records}))
        self.assertEqual(file["bytes"], self.files()[0].stat().st_size)
        self.assertEqual(file["identity"], lines[0]["device"])
        self.assertEqual((found["cap_bytes"], found["bytes"]), (1 << 30, file["bytes"]))
        out, _ = self.accepted(self.execute("cache", "list"))
        titles, row = [line.split() for line in out.splitlines()[:2]]
        self.assertEqual(titles[4:9], ["method", "operations", "records", "kernels", "co-runs"])
        self.assertEqual(row[4:9], [str(file[key]) for key in
                                    ("method", "operations", "records", "kernels", "coruns")])
        self.assertIn("1 profile,", out)

    def test_no_folder(self):
        self.env.update(XDG_CACHE_HOME="here", HOME="there")
        self.refused(self.execute("cache", "path"), harness.FAILURE, "here", "there", "absolute")

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


if __name__ == "__main__":
    harness.main()
