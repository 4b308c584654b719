"""`bench`: records, tables and curves of small cases on the CPU; what is refused, and that nothing is measured twice."""
import json
import re
import subprocess
import unittest
import xml.dom.minidom

import harness
from harness import BAD_INPUT, FAILURE, OK, USAGE, CommandTest

LITTLE_MEMORY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name) {
  long (*usual)(int) = dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES ? (256 << 20) / usual(_SC_PAGESIZE) : usual(name);
}
"""
MANY_CORES = """
#define _GNU_SOURCE
#include <sched.h>
int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set) {
  CPU_ZERO_S(bytes, set);
  for (int core = 0; core < 12; core++) CPU_SET_S(core, bytes, set);
  return 0;
}
"""
QUICK = ("--devices", "cpu", "--cache", "own", "--quiet")


class Bench(CommandTest):
    cold = True

    def bench(self, *arguments):
        """What is printed."""
        return self.accepted(self.execute("bench", *arguments))[0]

    def refuse(self, arguments, code, *words):
        return self.refused(self.execute("bench", *arguments), code, *words)

    def records(self, name="out.jsonl"):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def rungs(self, record):
        return {rung["rung"]: rung for rung in record["rungs"]}

    def test_products_are_recorded_rung_by_rung(self):
        self.bench("gemm", "--sizes", "16..32,24x8x40", *QUICK, "--json", "out.jsonl")
        records = self.records()
        self.assertEqual([record["case"] for record in records], ["16", "32", "24x8x40"])
        for record, flops in zip(records, (2 * 16**3, 2 * 32**3, 2 * 24 * 8 * 40)):
            rungs = self.rungs(record)
            self.assertEqual(list(rungs), ["naive", "blocked", "library"])
            self.assertEqual(record["flops"], flops)
            self.assertEqual(record["rejected"], [])
            self.assertEqual(rungs["naive"]["id"], "cpu.gemm_naive/t1")
            self.assertTrue(rungs["blocked"]["id"].startswith("cpu.gemm_blocked/t"))
            self.assertTrue(rungs["library"]["id"].startswith("onednn:"))
            for rung in rungs.values():
                self.assertAlmostEqual(rung["flop_per_s"] * rung["warm_us"] * 1e-6 / flops, 1, places=5)
                self.assertAlmostEqual(rung["share_of_peak"] * record["peak_flops"] / rung["flop_per_s"], 1, places=5)
            self.assertEqual(record["best"]["warm_us"], min(rung["warm_us"] for rung in rungs.values()))

    def preload(self, source):
        """What commands find before the C library."""
        cc = harness.find_tool(self, "cc", "gcc")
        subprocess.run([cc, "-shared", "-fPIC", "-o", "before.so", self.file("before.c", source), "-ldl"], cwd=self.folder, check=True)
        self.env["LD_PRELOAD"] = str(self.folder / "before.so")

    def test_a_layout_that_does_not_fit_is_left_out(self):
        """One channel fills a sixteenth of a blocked layout."""
        self.preload(LITTLE_MEMORY)
        _, err = self.accepted(self.execute("bench", "convtranspose", "--layers", "1x2000x2000:1:k1s1p0,3x5x5:2:k2s2p0", "--batch", "1",
                                            *QUICK, "--rungs", "library,gather", "--json", "out.jsonl"))
        self.assertRegex(err, r"layout nchw(16|8)c is left out: convtranspose: out of device memory")
        self.assertEqual([record["case"] for record in self.records()], ["1x2000x2000:1:k1s1p0", "3x5x5:2:k2s2p0"])

    def test_the_baseline_has_one_thread_where_there_are_many_cores(self):
        self.preload(MANY_CORES)
        self.env.update(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0")
        for operation, case, naive in (("gemm", ("--sizes", "192,256"), "gemm_naive"),
                                       ("convtranspose", ("--layers", "dcgan.1,dcgan.2", "--batch", "2"), "convtranspose_scatter")):
            self.bench(operation, *case, *QUICK, "--json", f"{operation}.jsonl")
            records = [self.rungs(record) for record in self.records(f"{operation}.jsonl")]
            self.assertEqual({record["naive"]["id"] for record in records}, {f"cpu.{naive}/t1"})
            self.assertTrue(any(rung["id"].endswith("/t12") for record in records for rung in record.values()))

    def test_layers_at_batches_in_precisions(self):
        told = self.bench("convtranspose", "--layers", "dcgan.4,8x4x4:6:k4s2p1", "--batch", "1,2", "--dtype", "f32,f16", *QUICK,
                          "--rungs", "naive,gather", "--json", "out.jsonl")
        records = self.records()
        self.assertEqual([(r["dtype"], r["batch"], r["case"]) for r in records],
                         [(dtype, batch, case) for dtype in ("f32", "f16") for batch in (1, 2)
                          for case in ("dcgan.4", "8x4x4:6:k4s2p1")])
        for record in records:
            self.assertEqual(list(self.rungs(record)), ["naive", "gather"])
            self.assertTrue(self.rungs(record)["naive"]["id"].startswith("cpu.convtranspose_scatter/t1"))
        self.assertEqual(records[0]["flops"], 2 * 64 * 32 * 32 * 3 * 16)
        for dtype in ("f32", "f16"):
            for batch in (1, 2):
                self.assertIn(f"convtranspose, {dtype}, batch {batch}: sequential naive loops on the CPU ", told)
        self.assertIn("over 2 of 2 cases", told)

    def test_nothing_is_measured_twice(self):
        self.bench("gemm", "--sizes", "16,24", *QUICK, "--json", "out.jsonl")
        before = self.records()
        self.bench("gemm", "--sizes", "16,24", *QUICK, "--frozen", "--json", "out.jsonl")
        for a, b in zip(before, self.records()):
            self.assertEqual((a["rungs"], a["best"], a["peak_flops"]), (b["rungs"], b["best"], b["peak_flops"]))
        self.refuse(("gemm", "--sizes", "20", *QUICK, "--frozen"), BAD_INPUT, "20 on cpu: gemm: not measured")

    def database(self):
        return next((self.folder / "own").glob("*.jsonl"))

    def test_a_peak_that_a_case_disproves_is_measured_again(self):
        """As where the machine did something else while the peak was measured."""
        self.bench("gemm", "--sizes", "64", *QUICK, "--json", "out.json")
        good = json.loads((self.folder / "out.json").read_text())
        lines = [json.loads(line) for line in self.database().read_text().splitlines()]
        slowed = [line for line in lines if re.match(r"Gemm f32 x=[0-9]+x(1024|4096)/", line.get("op", "")) and "measured" in line]
        self.assertTrue(slowed)
        for line in slowed:
            line["measured"].update({key: 1000 * line["measured"][key] for key in ("cold_us", "warm_us", "p10_us", "p90_us")})
        self.database().write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.bench("gemm", "--sizes", "64,16", *QUICK, "--json", "out.jsonl")
        for record in self.records():
            self.assertGreater(record["peak_flops"], good["peak_flops"] / 50)
        [record] = [record for record in self.records() if record["case"] == "16"]
        self.assertLess(record["best"]["share_of_peak"], 0.9)

    def test_a_refresh_measures_the_peaks_once(self):
        def copies():
            return sum('"op":"Copy ' in line and '"complete"' in line for line in self.database().read_text().splitlines())
        self.bench("gemm", "--sizes", "16", *QUICK)
        before = copies()
        self.assertGreater(before, 0)
        self.bench("gemm", "--sizes", "16,24,32", *QUICK, "--refresh")
        self.assertEqual(copies(), 2 * before)

    def test_a_slow_baseline_is_skipped_with_the_reason(self):
        self.bench("gemm", "--sizes", "64", *QUICK, "--naive-seconds", "0", "--json", "out.json")
        rungs = self.rungs(json.loads((self.folder / "out.json").read_text()))
        for name in ("naive", "blocked"):
            self.assertRegex(rungs[name]["skipped"], r"^some [0-9.e-]+ s a run, more than --naive-seconds 0$")
        self.assertIn("id", rungs["library"])
        # What is known costs nothing.
        self.bench("gemm", "--sizes", "64", *QUICK, "--json", "out.json")
        self.bench("gemm", "--sizes", "64", *QUICK, "--naive-seconds", "0", "--json", "out.json")
        self.assertIn("id", self.rungs(json.loads((self.folder / "out.json").read_text()))["naive"])

    def test_a_network_runs_with_a_baseline_that_is_asked_for_by_name(self):
        model = self.file("up.json", {
            "schema": "convsched.graph/1", "name": "up", "inputs": [{"name": "z", "shape": ["N", 8, 2, 2], "dtype": "f32"}],
            "nodes": [{"name": "up", "op": "ConvTranspose", "inputs": ["z"],
                       "attrs": {"out_channels": 4, "kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}}],
            "outputs": ["up"]})
        run = ("run", model, "--device", "cpu", "--policy", "sequential", "--quiet")
        self.accepted(self.execute(*run, "--allow", "cpu.convtranspose_scatter*", "--json", "out.json"))
        tasks = [task for policy in json.loads((self.folder / "out.json").read_text())["policies"] for task in policy["tasks"]]
        self.assertEqual({task["candidate"].split("/")[0] for task in tasks}, {"cpu.convtranspose_scatter"})
        self.accepted(self.execute(*run, "--refresh"))
        self.refused(self.execute(*run, "--cache", "other", "--allow", "cpu.*scatter*"), BAD_INPUT, "no admissible candidate")

    def test_curves_and_pages(self):
        self.bench("gemm", "--sizes", "16,32", *QUICK, "--json", "out.jsonl", "--output", "a.html")
        page = (self.folder / "a.html").read_text()
        for text in ("<h1>Bench: gemm</h1>", "<h2", "cpu naive f32", "cpu blocked f32", "Share of peak", "cpu.gemm_naive/t1"):
            self.assertIn(text, page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        told = self.bench("--from", "out.jsonl", "--output", "b.svg", "--format", "csv").splitlines()
        figure = xml.dom.minidom.parse(str(self.folder / "b.svg"))
        self.assertEqual(figure.documentElement.tagName, "svg")
        self.assertEqual(told[0].split(",")[:6], ["bench", "case", "dtype", "device", "rung", "us"])
        self.assertEqual(len(told), 1 + 2 * 4)
        _, err = self.accepted(self.execute("bench", "--from", "out.jsonl", "--output", "c.html"))
        self.assertEqual(err, "convsched: wrote c.html\n")
        self.assertEqual((self.folder / "c.html").read_text(), page)

    def test_a_case_is_recorded_once(self):
        self.bench("gemm", "--sizes", "16", *QUICK, "--json", "a.jsonl")
        record = json.loads((self.folder / "a.jsonl").read_text())
        other = [dict(record, dtype="f16"), dict(record, batch=2), dict(record, device=dict(record["device"], spec="cuda:0"))]
        for name, records in (("each", [record, *other]), ("twice", [record, *other, record])):
            (self.folder / name).write_text("\n".join(map(json.dumps, records)))
        self.bench("--from", "each")
        self.refuse(("--from", "twice"), BAD_INPUT, "twice: record 5: gemm 16 in f32 on cpu is there already")

    def test_numbers_of_records_that_cannot_be_are_refused(self):
        self.bench("gemm", "--sizes", "16", *QUICK, "--json", "a.json")
        record = json.loads((self.folder / "a.json").read_text())
        for member, value, words in (("batch", 1e300, "batch: wanted a whole number"), ("batch", 0, "batch: wanted a whole number"),
                                     ("best", dict(record["best"], warm_us=5e-324), "best: wanted id and times"),
                                     ("peak_flops", 1e-308, "naive: wanted id and times"), ("at", 0, "at: wanted a number above 0")):
            with self.subTest(member=member, value=value):
                self.file("b.json", dict(record, **{member: value}))
                self.refuse(("--from", "b.json"), BAD_INPUT, "record 1: " + words)
        self.file("b.json", dict(record, best=dict(record["best"], samples=2**33)))
        self.assertIn(f",{2**33},", self.bench("--from", "b.json", "--format", "csv"))

    def test_wrong_use_is_refused_before_anything_is_measured(self):
        for arguments, words in (
                ((), "wanted gemm or convtranspose"), (("matmul",), 'found "matmul"'),
                (("gemm", "--sizes", "0"), 'found "0"'), (("gemm", "--sizes", "64..32"), 'found "64..32"'),
                (("gemm", "--sizes", "16x16"), 'found "16x16"'), (("gemm", "--sizes", "99999999"), 'found "99999999"'),
                (("gemm", "--sizes", "16,"), 'found ""'), (("gemm", "--sizes", "1..2k"), 'found "1..2k"'),
                (("gemm", "--rungs", "naive,magic"), 'found "magic", wanted some of naive, blocked'),
                (("gemm", "--sizes", "16..64,4x4x4,32"), "bench gemm: 32 is given twice"),
                (("gemm", "--sizes", "5,05x5x5"), "5 is given twice"), (("gemm", "--dtype", "f32,f16,f32"), "f32 is given twice"),
                (("convtranspose", "--layers", "dcgan,dcgan.4"), "dcgan.4 is given twice"),
                (("convtranspose", "--layers", "3x4x4:2:k4s2p1,3x4x4:2:k4s2p01"), "3x4x4:2:k4s2p1 is given twice"),
                (("convtranspose", "--layers", "dcgan.0", "--batch", "2,1,2"), "dcgan.0 of batch 2 is given twice"),
                (("gemm", "--sizes", "0" * 127 + "64"), "wanted at most 127 bytes"),
                (("gemm", "--devices", "cpu", "--rungs", "tensor,shared"), "--rungs tensor,shared: cpu has none of them"),
                (("gemm", "--layers", "dcgan"), "--layers is for convtranspose"),
                (("gemm", "--batch", "2"), "--batch is for convtranspose"),
                (("convtranspose", "--sizes", "64"), "--sizes is for gemm"),
                (("convtranspose", "--layers", "dcgan.5"), 'found "dcgan.5"'),
                (("convtranspose", "--layers", "3x4x4:2:k4s2"), "wanted dcgan, dcgan.0"),
                (("convtranspose", "--layers", "3x1x1:2:k2s1p1"), "with an output"),
                (("gemm", "--devices", "cpu,tpu"), 'found "tpu"'), (("gemm", "--devices", "cpu,cpu"), "given twice"),
                (("gemm", "--output", "curves.png"), "wanted a name in .html or .svg"),
                (("gemm", "--format", "json"), "the records are --json's"),
                *((("--from", "x.jsonl", *more), f"so it goes without {more[0]}") for more in (
                    ("gemm",), ("--json", "y"), ("--sizes", "64"), ("--layers", "dcgan"), ("--devices", "cpu"), ("--rungs", "naive"),
                    ("--batch", "1"), ("--dtype", "f16"), ("--refresh",), ("--frozen",))),
                (("gemm", "--naive-seconds", "-1"), "wanted seconds from 0 on")):
            with self.subTest(arguments=arguments):
                self.refuse(arguments, USAGE, words)
        self.assertFalse((self.folder / "cache").exists())

    def test_what_cannot_be_is_refused_before_anything_is_measured(self):
        told = self.refuse(("gemm", "--sizes", "64,4000000", *QUICK), BAD_INPUT)
        self.assertRegex(told, r"4000000 in f32 takes [0-9.]+ .iB, and cpu has ")
        self.refuse(("gemm", "--sizes", "64", *QUICK, "--json", "no/such/folder.jsonl"), FAILURE, "no/such")
        self.refuse(("gemm", "--sizes", "64", *QUICK, "--output", "no/such/page.html"), FAILURE, "no/such")
        self.assertFalse((self.folder / "own").exists())

    def test_records_of_something_else_are_refused(self):
        for text, words in (("", "no records"), ("{", "record 1"), ('{"schema": "convsched.run/1"}', "record 1: schema: wanted convsched.bench/1"),
                            ('{"schema": "convsched.bench/1"}', "record 1: bench: wanted a text")):
            with self.subTest(text=text):
                (self.folder / "x.jsonl").write_text(text)
                self.refuse(("--from", "x.jsonl"), BAD_INPUT, words)
        self.refuse(("--from", "nowhere.jsonl"), FAILURE, "nowhere.jsonl")


if __name__ == "__main__":
    harness.main()
