"""Weights, arrays, disks, devices and caches that fail: the exit code and one message."""
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import time
import unittest

import harness
from harness import (BAD_INPUT, FAILURE, INTERRUPTED, OK, ROOT, TERMINATED, TINY_PARAMETERS, USAGE, CommandTest,
                     npy, read_npy, safetensors, with_header)


class Weights(CommandTest):
    def refused_weights(self, content, *fragments):
        path = self.file("w.safetensors", content)
        return self.refused(self.run_tiny("--weights", path), BAD_INPUT, "w.safetensors", *fragments)

    def test_good(self):
        path = self.file("w.safetensors", safetensors(TINY_PARAMETERS))
        self.accepted(self.run_tiny("--weights", path))

    def test_short(self):
        whole = safetensors(TINY_PARAMETERS)
        for length in (0, 4, 8, 40, len(whole) - 1):
            with self.subTest(length=length):
                self.refused_weights(whole[:length])

    def test_header(self):
        self.refused_weights(struct.pack("<Q", 1 << 60) + b"{}")
        self.refused_weights(struct.pack("<Q", 8) + b"no json!")
        self.refused_weights(with_header([], b""))

    def test_names(self):
        fewer = dict(TINY_PARAMETERS)
        del fewer["conv2.bias"]
        self.refused_weights(safetensors(fewer), "conv2.bias")
        text = b'{"conv1.bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},' \
               b'"conv1.bias":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}}'
        self.refused_weights(struct.pack("<Q", len(text)) + text + bytes(32), "conv1.bias")

    def test_shapes(self):
        self.refused_weights(safetensors({**TINY_PARAMETERS, "conv1.weight": (4, 3, 3, 2)}),
                             "conv1.weight")

    def entry(self, **changed):
        header = {"conv1.bias": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}
        header["conv1.bias"].update(changed)
        return with_header(header, bytes(16))

    def test_entries(self):
        for what, changed in {
                "dtype": {"dtype": "I64"}, "beyond the end": {"data_offsets": [0, 1 << 40]},
                "backwards": {"data_offsets": [16, 0]}, "negative": {"data_offsets": [-16, 0]},
                "size against shape": {"shape": [5]}, "overflow": {"shape": [1 << 40, 1 << 40]},
                "negative extent": {"shape": [-4]}, "a hole": {"data_offsets": [4, 16], "shape": [3]},
        }.items():
            with self.subTest(what):
                self.refused_weights(self.entry(**changed))

    def test_missing_file(self):
        code, _, err = self.run_tiny("--weights", "none.safetensors")
        self.assertIn(code, (BAD_INPUT, FAILURE))
        self.assertIn("none.safetensors", err)


class Arrays(CommandTest):
    COUNT = 3 * 8 * 8

    def refused_input(self, name, content, *fragments):
        path = self.file(name, content)
        return self.refused(self.run_tiny("--input", path), BAD_INPUT, name, *fragments)

    def test_shape(self):
        self.refused_input("a.npy", npy((1, 3, 8, 7), [0.0] * (3 * 8 * 7)))
        self.refused_input("b.npy", npy((2, 3, 8, 8), [0.0] * (2 * self.COUNT)))

    def test_short(self):
        whole = npy((1, 3, 8, 8), [0.5] * self.COUNT)
        for length in (0, 5, 20, len(whole) - 1):
            with self.subTest(length=length):
                self.refused_input("a.npy", whole[:length])

    def test_dtype(self):
        self.refused_input("a.npy", npy((1, 3, 8, 8), [0] * self.COUNT, "<i8", "q"), "i8")

    def test_raw_size(self):
        self.refused_input("a.raw", bytes(4 * self.COUNT - 4))
        self.refused_input("a.raw", bytes(4 * self.COUNT + 1))

    def test_missing(self):
        code, _, err = self.run_tiny("--input", "none.npy")
        self.assertIn(code, (BAD_INPUT, FAILURE))
        self.assertIn("none.npy", err)

    def test_a_dump_that_cannot_be_written_fails_before_anything_is_measured(self):
        for code, item, *told in ((FAILURE, "conv1=absent/a.npy", "absent/a.npy"), (FAILURE, "conv1=/proc/a.npy", "/proc/a.npy"),
                                  (USAGE, "conv1=tiny.json", "--dump tiny.json", "which is read"),
                                  (USAGE, "conv1=r.json", "--dump r.json", "--json"),
                                  (USAGE, "conv1=out.npy", "--dump out.npy", "--output"),
                                  (USAGE, "conv1=conv2.npy", "conv2.npy", "another result")):
            with self.subTest(item):
                self.refused(self.run_tiny("--dump", item, "--dump", "conv2", "--cache", "new", "--json", "r.json", "--output",
                                           "out.npy"), code, *told)
        self.assertFalse((self.folder / "new").exists())
        self.accepted(self.run_tiny("--dump", "conv1=a.npy", "--dump", "conv2", "--samples", "2"))
        self.assertTrue((self.folder / "a.npy").exists() and (self.folder / "conv2.npy").exists())

    def test_unknown_node_to_dump(self):
        self.refused(self.run_tiny("--dump", "nowhere"), BAD_INPUT, "nowhere")


class WhatBackendsCannot(CommandTest):
    def test_rank_is_blamed_not_the_workspace_limit(self):
        def change(g):
            g["inputs"][0]["shape"] = ["N", 2, 2, 3, 4]
            g["nodes"] = [{"name": "y", "op": "Relu", "inputs": ["x"]}]
            g["outputs"] = ["y"]

        err = self.refused(self.run_tiny(model=self.model(change)), BAD_INPUT, "node y", "rank 5", "up to 4")
        self.assertNotIn("workspace", err)

    def test_output_padding_past_the_stride(self):
        """A single weight of 1 spreads the input; what output_padding adds stays 0."""
        def change(g):
            g["inputs"][0]["shape"] = ["N", 1, 2, 2]
            g["nodes"] = [{"name": "y", "op": "ConvTranspose", "inputs": ["x"],
                           "attrs": {"out_channels": 1, "kernel_shape": [1, 1], "dilations": [3, 3],
                                     "output_padding": [2, 1], "bias": False}}]
            g["outputs"] = ["y"]

        weights = self.file("w.safetensors", with_header(
            {"y.weight": {"dtype": "F32", "shape": [1, 1, 1, 1], "data_offsets": [0, 4]}}, struct.pack("<f", 1)))
        source = self.file("x.npy", npy((1, 1, 2, 2), [1.0, 2.0, 3.0, 4.0]))
        self.accepted(self.run_tiny("--weights", weights, "--input", source, "--output", "y.npy",
                                    model=self.model(change)))
        shape, values = read_npy(self.folder / "y.npy")
        self.assertEqual(shape, (1, 1, 4, 3))
        self.assertEqual(values, (1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0))


class FullDisk(CommandTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")

    def failed(self, result, *fragments):
        code, _, err = result
        self.assertEqual(code, FAILURE, err)
        for fragment in fragments:
            self.assertIn(fragment, err)

    def test_json(self):
        self.failed(self.run_tiny("--json", "/dev/full"), "/dev/full", "No space left")

    def test_output(self):
        self.failed(self.run_tiny("--output", "/dev/full"), "/dev/full", "No space left")

    def test_stdout(self):
        with open("/dev/full", "w") as full:
            self.failed(self.run_tiny(stdout=full), "No space left")

    def test_generated_weights(self):
        self.failed(self.execute("generate-weights", self.model(), "--output", "/dev/full"),
                    "/dev/full")

    def test_folder_that_is_not_there(self):
        self.failed(self.run_tiny("--json", "nowhere/a.json"), "nowhere/a.json")

    def test_unwritable_results_are_found_out_first(self):
        (self.folder / "folder").mkdir()
        for option in ("--json", "--output"):
            for path in ("nowhere/a.json", "folder"):
                with self.subTest(option=option, path=path):
                    self.refused(self.run_tiny(option, path), FAILURE, path)
        self.refused(self.execute("plan", self.model(), "--device", "cpu", "--json", "nowhere/a.json"),
                     FAILURE, "nowhere/a.json")

    def test_an_existing_result_is_kept_until_there_is_a_new_one(self):
        path = self.file("a.json", "kept")
        self.refused(self.run_tiny("--json", path, "--weights", "none.safetensors"), FAILURE)
        self.assertEqual(pathlib.Path(path).read_text(), "kept")
        self.assertEqual([p.name for p in self.folder.glob("a.json*")], ["a.json"])
        self.accepted(self.run_tiny("--json", path))
        self.assertEqual(json.loads(pathlib.Path(path).read_text())["model"], "tiny")


class Devices(CommandTest):
    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "there is a GPU here")
    def test_no_gpu(self):
        self.refused(self.execute("run", self.model(), "--device", "cuda:0"), FAILURE, "cuda:0")

    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "there is a GPU here")
    def test_auto_without_gpu(self):
        self.accepted(self.execute("run", self.model()))

    def test_memory_limit_that_no_plan_holds_is_refused_before_anything_is_measured(self):
        """A convolution's input and output are there at once: of conv1 1000 x (3 + 8) x 16 x 16 f32 or f16."""
        model = self.file("m.json", {"schema": "convsched.graph/1", "name": "m",
                                     "inputs": [{"name": "x", "shape": ["N", 3, 16, 16], "dtype": "f32"}],
                                     "nodes": [{"name": "conv1", "op": "Conv", "inputs": ["x"], "attrs": {
                                         "out_channels": 8, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}},
                                               {"name": "pool", "op": "GlobalAveragePool", "inputs": ["conv1"]}],
                                     "outputs": ["pool"]})
        for dtype, size in (("f32", 4), ("bf16", 2)):
            bound = 1000 * 11 * 256 * size
            how = ("--device", "cpu", "--batch", "1000", "--dtype", dtype, "--cache", "new")
            for command, more in (("run", ()), ("plan", ()), ("trace", ())):
                self.refused(self.execute(command, model, *how, "--memory-limit", str(bound - 1), *more), BAD_INPUT,
                             "memory limit", f"at most {bound - 1} bytes", '"conv1"', f"takes {bound}")
            self.assertEqual(list((self.folder / "new").rglob("*.jsonl")), [], "measured first")
            self.refused(self.execute("plan", model, *how, "--memory-limit", str(bound), "--frozen"), BAD_INPUT, "not measured")

    def test_memory_limit(self):
        """A limit below the minimum names the minimum of the policy, which is then accepted."""
        least = {}
        for policy in ("streams", "sequential"):
            plan = functools.partial(self.execute, "plan", self.model(), "--device", "cpu", "--policy", policy,
                                     "--memory-limit")
            self.accepted(self.execute("plan", self.model(), "--device", "cpu", "--policy", policy))
            err = self.refused(plan("64", "--frozen"), BAD_INPUT, f"policy {policy}", "memory limit", "at most 64 bytes")
            least[policy] = int(re.search(r"the smallest possible is (\d+)", err)[1])
            self.accepted(plan(least[policy]))
        # All that is run must hold it; the wanted policy is planned first.
        self.refused(self.run_tiny("--memory-limit", "64", "--frozen"), BAD_INPUT, "policy streams", least["streams"])
        self.accepted(self.run_tiny("--memory-limit", max(least.values())))


class Cache(CommandTest):
    def files(self):
        return [p for p in (self.folder / "cache").rglob("*") if p.is_file()]

    def test_unwritable(self):
        self.env["XDG_CACHE_HOME"] = self.file("not-a-folder", "x")
        _, err = self.accepted(self.run_tiny("--policy", "all", "--search-seconds", "0.2"))
        self.assertEqual(err.lower().count("warning"), 1, err)
        self.assertIn("not-a-folder", err)

    def test_frozen(self):
        shutil.rmtree(self.folder / "cache")
        self.refused(self.run_tiny("--frozen"), BAD_INPUT, "frozen")
        self.accepted(self.run_tiny())
        self.accepted(self.run_tiny("--frozen"))

    def test_torn_and_foreign_lines_are_misses(self):
        self.accepted(self.run_tiny())
        self.assertTrue(self.files(), "nothing was cached")
        for path in self.files():
            content = path.read_bytes()
            path.write_bytes(b'{"schema": "convsched.profile/99", "x": 1}\n\xff\xfe\n[]\n' +
                             content[:len(content) - 7])
        self.accepted(self.run_tiny())
        self.accepted(self.run_tiny("--frozen"))


class Interrupt(CommandTest):
    cold = True

    def test_ctrl_c_while_profiling(self):
        process = self.start("run", ROOT / "models/googlenet.json", "--device", "cpu")
        time.sleep(2.0)
        self.assertIsNone(process.poll(), "ended before it could be interrupted")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertIsNone(harness.SANITIZER.search(err), err)
        for path in pathlib.Path(self.env["XDG_CACHE_HOME"]).rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                self.assertTrue(not data or data.endswith(b"\n"), f"{path} ends in a torn line")
        self.assertEqual(self.run_tiny()[0], OK)  # what was kept is of use, not in the way

    def start_two(self):
        """A run that has finished its first model and profiles the second."""
        record = self.folder / "record.json"
        process = self.start("run", self.model(), ROOT / "models/inception_v3.json", "--device", "cpu",
                             "--json", record)
        for line in process.stdout:
            if line.startswith("First result"):
                break
        time.sleep(0.5)
        return record, process

    def test_records_are_kept_when_the_signal_comes_twice(self):
        """As `timeout -s INT` sends it: to the process and to its group."""
        record, process = self.start_two()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertEqual(json.loads(record.read_text())["model"], "tiny")

    def test_records_are_kept_when_terminated(self):
        record, process = self.start_two()
        process.terminate()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, TERMINATED, err)
        self.assertIn("interrupted", err)
        self.assertEqual(json.loads(record.read_text())["model"], "tiny")


if __name__ == "__main__":
    harness.main()
