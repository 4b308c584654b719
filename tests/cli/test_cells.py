"""bench/cells.py on small models: records appended cell by cell, done ones skipped, its deadline; the page
that bench/coselect_page.py makes of such records."""
import copy
import json
import os
import signal
import subprocess
import sys
import time

import harness
from harness import INTERRUPTED, OK, ROOT, USAGE, WRONG, CommandTest

SMALL = str(ROOT / "tests/data/report/branches.json")
PROFILE = ROOT / "tests/data/profiles/h100-f16-b32.jsonl.gz"
POLICIES = ("sequential", "streams", "opara", "ios", "coselect")


class Cells(CommandTest):
    def start_cells(self, *args):
        return subprocess.Popen([sys.executable, ROOT / "bench/cells.py", "--command", harness.COMMAND, "--out",
                                 self.folder / "out.jsonl", "--cache", self.folder / "cache", *map(str, args)],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def cells(self, *args):
        process = self.start_cells(*args)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def on_cpu(self, *args):
        return self.cells("--device", "cpu", "--dtypes", "f32", "--search-seconds", "0.3", *args)

    def records(self):
        path = self.folder / "out.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def test_records_and_skips(self):
        code, out, err = self.on_cpu("--models", SMALL, "--batches", "1,2", "--first", f"{SMALL}/f32/2")
        self.assertEqual(code, OK, err)
        found = self.records()
        self.assertEqual([r["batch"] for r in found], [2, 1])
        for record in found:
            self.assertEqual(sorted(p["name"] for p in record["policies"]), sorted(POLICIES))
            self.assertTrue(all(len(p["latency_us"]["samples"]) == 50 for p in record["policies"]))
        us = {p["name"]: p["latency_us"]["median"] for p in found[1]["policies"]}
        row = next(line.split() for line in out.splitlines() if line.startswith("branches/f32/1 "))
        self.assertEqual(row[1:6], [f"{us[name]:.1f}" for name in POLICIES])
        best = min(us[name] for name in POLICIES[:-1])
        self.assertEqual(row[6:8], [f"{best / us['coselect']:.3f}", f"{us['sequential'] / us['coselect']:.3f}"])
        # What --out holds is skipped, and what --done does.
        code, out, err = self.on_cpu("--models", SMALL, "--batches", "1,2")
        self.assertEqual((code, len(self.records())), (OK, 2), err)
        self.assertEqual(err.count("recorded already"), 2, err)
        os.rename(self.folder / "out.jsonl", self.folder / "done.jsonl")
        code, out, err = self.on_cpu("--models", SMALL, "--batches", "1,2", "--done", self.folder / "done.jsonl")
        self.assertEqual((code, self.records()), (OK, []), err)

    def test_what_cannot_be_begun_is_told_before_anything_runs(self):
        (self.folder / "damaged.jsonl").write_text('{"schema": "convsched.run/1", "mod')  # as of a full disk
        (self.folder / "other.jsonl").write_text('{"schema": "x"}\n[1]\n')
        for more, told in ((("--done", "damaged.jsonl"), "damaged.jsonl"), (("--done", "other.jsonl"), "other.jsonl"),
                           (("--done", "missing.jsonl"), "missing.jsonl"), (("--models", "nowhere.json"), "nowhere.json"),
                           (("--out", "nowhere/out.jsonl"), "--out")):
            code, out, err = self.on_cpu("--models", SMALL, "--batches", "1", *more)
            self.assertEqual((code, out), (USAGE, ""), err)
            self.assertIn(told, err)
            self.assertEqual(len(err.splitlines()), 1, err)
        self.assertEqual(self.records(), [])

    def test_simulated_device(self):
        code, out, err = self.cells("--device", f"sim:{PROFILE}", "--models", "googlenet_bn,resnet50", "--dtypes", "f16",
                                    "--batches", "32")
        self.assertEqual((code, len(self.records())), (OK, 2), err)
        self.assertEqual(out.count(" predicted"), 2)

    def test_no_cell_is_begun_that_could_not_end(self):
        code, out, err = self.on_cpu("--models", SMALL, "--batches", "1", "--deadline-s", "10", "--overhead-s", "11")
        self.assertEqual((code, self.records()), (OK, []), err)
        self.assertIn(f"1 left out (deadline): {SMALL}/f32/1", out)

    def test_a_running_cell_is_interrupted_at_the_deadline(self):
        began = time.monotonic()
        code, out, err = self.cells("--device", "cpu", "--dtypes", "f32", "--models", "densenet121", "--batches", "8", "--samples",
                                    "5000", "--search-seconds", "2", "--overhead-s", "0", "--deadline-s", "4", "--log", "log")
        self.assertEqual((code, self.records()), (OK, []), err)
        self.assertIn("1 left out (deadline)", out)
        self.assertLess(time.monotonic() - began, 19)  # not by a kill
        self.assertIn("interrupted", (self.folder / "log").read_text())
        self.assertTrue(any((self.folder / "cache").rglob("profile-*.jsonl")))

    def test_interrupt(self):
        process = self.start_cells("--device", "cpu", "--dtypes", "f32", "--models", "densenet121", "--batches", "8,1",
                                   "--samples", "5000")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertIn("2 left out (interrupted)", out)

    def test_cells_that_fail_do_not_stop_the_others(self):
        bad = self.file("bad.json", {"schema": "convsched.graph/2", "name": "bad"})
        code, out, err = self.on_cpu("--models", f"{bad},{SMALL}", "--batches", "1")
        self.assertEqual((code, len(self.records())), (WRONG, 1), err)
        self.assertIn(f"{bad}/f32/1: exit code 3", out)

    def test_usage(self):
        for wrong in (("--samples", "49"), ("--order", "model,dtype"), ("--first", "googlenet")):
            code, out, err = self.on_cpu("--models", SMALL, *wrong)
            self.assertEqual((code, out), (USAGE, ""), err)
            self.assertIn(wrong[0], err)


def record(us, model="googlenet", dtype="f16", batch=8, device="A GPU", backend="cuda", n=50, passed=True):
    """As `run` writes them, as far as the page reads it; us: the median of each of POLICIES, None: not there."""
    policies = [{"name": name, "latency_us": {"median": value, "samples": [value] * n}}
                for name, value in zip(POLICIES, us) if value is not None]
    return {"model": model, "dtype": dtype, "batch": batch, "device": {"name": device, "backend": backend},
            "policies": policies, "verification": {"passed": passed},
            "bounds": {"roofline_us": 10.0, "critical_path_us": 20.0, "area_us": None}}


class Page(CommandTest):
    cold = True

    def page(self, files):
        for name, found in files.items():
            self.file(name, "".join(json.dumps(r) + "\n" for r in found))
        done = subprocess.run([sys.executable, ROOT / "bench/coselect_page.py", self.folder], check=True, timeout=60,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout

    def rows(self, page, first):
        return [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith(f"| {first} ")]

    def test_wins_losses_and_missing_cells(self):
        page = self.page({"2026-01-01-gpu-coselect.jsonl": [
            record((200, 110, 120, 130, 100), batch=1),
            record((200, 103, 120, 130, 100), batch=8),  # 3%: a draw
            record((99, 96, 120, 130, 100), batch=32),
            record((200, 110, 120, 130, 100), batch=128, passed=False),
            record((200, 110, 120, 130, 100), model="resnet50", n=49)]})
        self.assertIn("in **2 of 5** cells", page)
        self.assertIn("More than 3% slower than the best other: googlenet/f16/32.", page)
        self.assertIn("Slower than `sequential`: googlenet/f16/32.", page)
        self.assertIn("Wrong results: googlenet/f16/128.", page)
        self.assertIn("Fewer than 50 samples of a policy: resnet50/f16/8.", page)
        self.assertIn("Not recorded (43): ", page)
        self.assertIn("; resnet50 f16 batch 1, 32, 128;", page)
        self.assertEqual(self.rows(page, "googlenet")[0][2:14], ["1", "200.0", "110.0", "120.0", "130.0", "100.0", "1.100",
                                                                 "2.000", "1.100", "10.0", "20.0", ""])

    def test_slower_by_chance_is_not_slower(self):
        same, slower = record((100, 110, 120, 130, 100)), record((100, 110, 120, 130, 101), batch=32)
        for found, shift in ((same, 0.1), (slower, 1)):
            noise = [3 * (i % 5 - 2) for i in range(50)]
            found["policies"][0]["latency_us"]["samples"] = [100 + d for d in noise]
            found["policies"][4]["latency_us"]["samples"] = [100 + shift * (i % 2 == 0 or shift == 1) + d
                                                             for i, d in enumerate(noise)]
        same["policies"][4]["latency_us"]["median"] = 100.05
        page = self.page({"2026-01-01-gpu-coselect.jsonl": [same, slower]})
        self.assertIn("Slower than `sequential`: googlenet/f16/32.", page)

    def test_the_same_plan_is_not_slower(self):
        same, other = record((100, 110, 120, 130, 101)), record((100, 110, 120, 130, 101), batch=32)
        for found, candidate in ((same, "a"), (other, "b")):
            for policy, chosen in (("sequential", "a"), ("coselect", candidate)):
                found["policies"][POLICIES.index(policy)]["tasks"] = [
                    {"name": "conv", "candidate": chosen, "stream": 0, "start_us": len(policy), "end_us": 20}]
        page = self.page({"2026-01-01-gpu-coselect.jsonl": [same, other]})
        self.assertIn("Slower than `sequential`: googlenet/f16/32.", page)
        self.assertIn("The plan of `sequential` itself: googlenet/f16/8.", page)

    def test_the_newest_record_of_a_cell_counts(self):
        page = self.page({"2026-01-01-gpu-coselect.jsonl": [record((200, 110, 120, 130, 101))],
                          "2026-01-01-gpu-coselect-10.jsonl": [record((200, 110, 120, 130, 110))],
                          "2026-01-01-gpu-coselect-9.jsonl": [record((200, 110, 120, 130, 109))],
                          # Not of all policies; not of this table.
                          "2026-01-02-gpu-coselect-other.jsonl": [record((200, None, None, None, 100))],
                          "2026-01-02-gpu-models.jsonl": [record((200, 110, 120, 130, 100))]})
        self.assertEqual([row[7] for row in self.rows(page, "googlenet")], ["110.0"])

    def test_devices_apart(self):
        page = self.page({"a-coselect.jsonl": [record((200, 110, 120, 130, 101)),
                                               record((900, 810, 820, 830, 801), device="A CPU", backend="cpu")]})
        self.assertLess(page.index("## A CPU"), page.index("## A GPU"))
        self.assertEqual([row[7] for row in self.rows(page, "googlenet")], ["801.0", "101.0"])
        self.assertEqual(page.count("Not recorded"), 1)  # what is to be recorded is of a GPU

    def test_gpus_together(self):
        older, newer = record((200, 110, 120, 130, 100), batch=1), record((200, 110, 120, 130, 109), batch=1)
        page = self.page({"2026-01-01-one-coselect.jsonl": [older, record((200, 110, 120, 130, 100))],
                          "2026-01-02-two-coselect.jsonl": [dict(newer, device={"name": "Another GPU", "backend": "cuda"})]})
        together = page[page.index("## All GPUs"):page.index("## A GPU")]
        self.assertIn("of A GPU or Another GPU.", together)
        self.assertIn("in **1 of 2** cells", together)  # of batch 1 the newer one, a draw, counts
        self.assertIn("Not recorded (46): ", together)
        self.assertNotIn("All GPUs", self.page({"2026-01-02-two-coselect.jsonl": [older]}))

    def test_ablation_and_overlap(self):
        ablated, traced = record((200, None, None, None, 100)), record((200, 110, 120, 130, 100))
        ablated["ablation"] = {"base": "streams", "samples": 50, "variants": [
            {"name": "base", "latency_us": 110.0, "speedup_vs_base": 1.0},
            {"name": "candidates", "latency_us": 100.0, "speedup_vs_base": 1.1}]}
        figures = {"concurrency": 1.8, "overlapped_us": 12.5, "busy_us": 1.0, "active_us": 1.0, "span_us": 1.0}
        block = {"tasks": ["a", "b"], "streams": 2, "predicted": figures, "achieved": dict(figures, concurrency=1.4)}
        traced["policies"][-1]["overlap"] = {"runs": 5, "blocks": [block, dict(copy.deepcopy(block), tasks=["c"], streams=1)],
                                             "whole": {"predicted": figures, "achieved": None}}
        page = self.page({"x-ablation.jsonl": [ablated], "x-overlap.jsonl": [traced]})
        self.assertIn(["googlenet", "f16", "8", "streams", "110.0", "1.100", "", "50", "x-ablation.jsonl"],
                      self.rows(page, "googlenet"))
        self.assertEqual([row[3:11] for row in self.rows(page, "googlenet") if row[3] == "coselect"],
                         [["coselect", "a", "2", "2", "1.80", "1.40", "12.5", "12.5"],
                          ["coselect", "all", "", "", "1.80", "", "12.5", ""]])


if __name__ == "__main__":
    harness.main()
