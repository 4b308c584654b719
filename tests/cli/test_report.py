"""`convsched report`: forms, options and errors, on a profile made by hand; no device is needed."""
import csv
import gzip
import io
import json
import shutil

import harness
from harness import BAD_INPUT, FAILURE, USAGE, CommandTest

DATA = harness.ROOT / "tests" / "data" / "report"
MODEL, PROFILE = DATA / "branches.json", DATA / "branches.profile.jsonl"


class Report(CommandTest):
    cold = True

    def report(self, *args, profile=PROFILE):
        return self.execute("report", MODEL, "--profile", profile, *args)

    def rows(self, *args):
        out, err = self.accepted(self.report("--format", "csv", *args))
        self.assertEqual(err, "")
        return list(csv.DictReader(io.StringIO(out)))

    def test_text(self):
        out, err = self.accepted(self.report("--table", "resources"))
        self.assertEqual(err, "")
        self.assertTrue(out.startswith("resources: branches, batch 1, f32, Made-up GPU\n"), out)
        self.assertIn("cutlass_80_simt_sgemm_128x64", out)

    def test_markdown(self):
        for table in ("resources", "workspace", "complementary"):
            out, _ = self.accepted(self.report("--table", table, "--format", "md"))
            lines = [line for line in out.splitlines() if line.startswith("|")]
            self.assertGreater(len(lines), 2)
            self.assertEqual(len({line.count("|") - line.count("\\|") for line in lines}), 1, out)

    def test_csv(self):
        rows = self.rows("--table", "workspace", "--node", "conv3")
        self.assertEqual([row["algorithm"] for row in rows],
                         ["IMPLICIT_PRECOMP_GEMM", "FFT", "WINOGRAD_NONFUSED", "eng10", "eng20"])
        self.assertEqual(rows[2]["rejected"], "wrong result: relative L2 error 0.3, limit 0.001")
        self.assertEqual({row["node"] for row in rows}, {"conv3"})

    def test_candidates(self):
        ids = [row["candidate"] for row in self.rows("--table", "resources", "--candidates", "all", "--node", "conv5")]
        self.assertEqual(ids, ["cudnn.legacy:IMPLICIT_GEMM/fma", "cudnn.graph:eng3{1=1}"])
        slow = self.rows("--table", "resources", "--deterministic", "--node", "conv*")
        self.assertEqual(slow[0]["candidate"], "cudnn.graph:eng10{2=6}")

    def test_json(self):
        out, _ = self.accepted(self.report("--table", "complementary", "--json", "-"))
        report = json.loads(out)
        self.assertEqual((report["schema"], report["table"]), ("convsched.report/1", "complementary"))
        self.assertEqual(report["summary"]["wins"], 1)
        self.assertAlmostEqual(report["rows"][0]["gain"], 1.3)
        text, _ = self.accepted(self.report("--table", "complementary", "--json", "report.json"))
        self.assertIn("Sets measured: 1", text)
        self.assertEqual(json.loads((self.folder / "report.json").read_text()), report)

    def test_sets_name_the_nodes_whose_outputs_are_slices(self):
        """3b/1x1 and 3b/3x3_reduce differ only in where their outputs lie: in a concat, and not."""
        recorded = harness.ROOT / "tests" / "data" / "profiles" / "h100-f16-b1.jsonl.gz"
        out, _ = self.accepted(self.execute("report", harness.ROOT / "models" / "googlenet.json", "--table",
                                            "complementary", "--dtype", "f16", "--format", "csv", "--profile", recorded))
        moved = [row["node"] for row in csv.DictReader(io.StringIO(out)) if ".dense" in row["chosen"]]
        self.assertIn("inception_3b/1x1", moved)
        self.assertEqual([node for node in moved if node.endswith("_reduce")], [])

    def test_compressed_profile(self):
        packed = self.folder / "p.jsonl.gz"
        with open(PROFILE, "rb") as plain, gzip.open(packed, "wb") as out:
            shutil.copyfileobj(plain, out)
        wanted, _ = self.accepted(self.report("--table", "workspace"))
        found, _ = self.accepted(self.report("--table", "workspace", profile=packed))
        self.assertEqual(found, wanted)

    def test_wrong_use(self):
        self.refused(self.report(), USAGE, "--table")
        for option in ("--table", "--format", "--candidates"):
            self.refused(self.report("--table", "resources", option, "pie"), USAGE, "pie", "wanted")
        self.refused(self.report("--table", "resources", "--batch", "1,2"), USAGE, "--batch")

    def test_what_is_not_there(self):
        self.refused(self.report("--table", "resources", "--node", "conf3"), BAD_INPUT, "conf3", "near it: conv3")
        self.refused(self.report("--table", "workspace", "--batch", "8", "--dtype", "f16"), BAD_INPUT,
                     f"convsched profile {MODEL} --batch 8 --dtype f16", "Made-up GPU")
        self.refused(self.report("--table", "workspace", profile="nowhere.jsonl"), FAILURE, "nowhere.jsonl")
        self.refused(self.execute("report", MODEL, "--device", "cpu", "--table", "workspace"), BAD_INPUT,
                     "convsched profile")

    def test_nothing_to_run_together(self):
        """Of a chain no measurement is asked for; of branches that were not measured it is."""
        graph = json.loads(MODEL.read_text())
        lines = [line for line in PROFILE.read_text().splitlines(keepends=True)
                 if '"corun":{' not in line]
        profile = self.file("alone.jsonl", "".join(lines))
        self.refused(self.report("--table", "complementary", profile=profile), BAD_INPUT, "--corun")
        keep = {"reduce3", "conv3"}
        graph.update(nodes=[node for node in graph["nodes"] if node["name"] in keep],
                     outputs=["conv3"])
        err = self.refused(self.execute("report", self.file("chain.json", graph), "--profile", profile,
                                        "--table", "complementary"), BAD_INPUT, "independent")
        self.assertNotIn("--corun", err)


if __name__ == "__main__":
    harness.main()
