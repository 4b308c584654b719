"""How much memory the weights take; files of them that are written while they are in use."""
import json
import math
import os
import pathlib
import struct
import subprocess
import time

import harness
import onnx_bytes as onnx
from harness import FAILURE, OK, CommandTest

FEATURES, LAYERS = 2048, 8


def one_core():
    """Weights are packed on all cores, each with a layer of its own in memory."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Weights(CommandTest):
    def peak_bytes(self, *args):
        """Peak memory of one run that succeeds."""
        process = self.start("run", *args, "--device", "cpu", "--policy", "sequential", "--samples", "2",
                             "--verify", "none", "--quiet", stdout=subprocess.DEVNULL, preexec_fn=one_core)
        err = process.stderr.read()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, OK, err)
        return usage.ru_maxrss * 1024

    def test_are_not_held_twice(self):
        """Beyond what the command takes anyway: the packed weights and a layer or two of the file."""
        nodes = [{"name": f"g{i}", "op": "Gemm", "inputs": [f"g{i - 1}" if i else "x"],
                  "attrs": {"out_features": FEATURES}} for i in range(LAYERS)]
        chain = self.file("chain.json", {
            "schema": "convsched.graph/1", "name": "chain",
            "inputs": [{"name": "x", "shape": ["N", FEATURES], "dtype": "f32"}],
            "nodes": nodes, "outputs": [nodes[-1]["name"]]})
        weights = self.folder / "chain.safetensors"
        self.accepted(self.execute("generate-weights", chain, "--output", weights))
        self.peak_bytes(chain, "--weights", weights)  # measures candidates
        self.peak_bytes(self.model())
        anyway = self.peak_bytes(self.model())
        peak = self.peak_bytes(chain, "--weights", weights)
        self.assertLess(peak - anyway, 1.5 * weights.stat().st_size)


class WrittenMeanwhile(CommandTest):
    """A mapped file that another process writes in place: one message that names it, never a crash."""
    cold = True
    FEATURES, LAYERS = 512, 3

    def chain(self):
        nodes = [{"name": f"g{i}", "op": "Gemm", "inputs": [f"g{i - 1}" if i else "x"],
                  "attrs": {"out_features": self.FEATURES}} for i in range(self.LAYERS)]
        return self.file("chain.json", {
            "schema": "convsched.graph/1", "name": "chain",
            "inputs": [{"name": "x", "shape": ["N", self.FEATURES], "dtype": "f32"}],
            "nodes": nodes, "outputs": [nodes[-1]["name"]]})

    def refused_when(self, path, write, *args):
        """`write` is called as soon as the command has mapped `path`; verification reads it again later."""
        process = self.start("run", *args, "--device", "cpu", "--samples", "200", "--verify", "full", "--quiet")
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        for _ in range(60000):
            if path.name in maps.read_text() or process.poll() is not None:
                break
            time.sleep(0.001)
        write(path)
        out, err = process.communicate(timeout=120)
        self.refused((process.returncode, out, err), FAILURE, path.name)
        return err

    def test_weights(self):
        def cut_off(path):
            os.truncate(path, 8192)

        def overwritten(path):
            with open(path, "r+b") as file:
                file.seek(path.stat().st_size // 2)
                file.write(bytes(4096))
        chain = self.chain()
        for write in (cut_off, overwritten):
            with self.subTest(write.__name__):
                weights = self.folder / f"{write.__name__}.safetensors"
                self.accepted(self.execute("generate-weights", chain, "--output", weights))
                self.refused_when(weights, write, chain, "--weights", weights)

    def test_onnx(self):
        n = self.FEATURES
        names = [f"w{i}" for i in range(self.LAYERS)]
        nodes = [onnx.node("Gemm", [f"y{i - 1}" if i else "x", name], [f"y{i}"], f"g{i}", transB=1)
                 for i, name in enumerate(names)]
        body = onnx.graph(nodes, [onnx.value("x", ["N", n])], [onnx.value(f"y{self.LAYERS - 1}", ["N", n])],
                          [onnx.tensor(name, [n, n], [0.01] * (n * n)) for name in names])
        model = pathlib.Path(self.file("m.onnx", onnx.model(body)))
        self.refused_when(model, lambda path: os.truncate(path, 8192), model)

    def test_a_pipe_that_nobody_writes(self):
        os.mkfifo(self.folder / "w.safetensors")
        self.refused(self.run_tiny("--weights", "w.safetensors", timeout=60), FAILURE, "w.safetensors",
                     "not a regular file")


class NotFinite(CommandTest):
    """Weights with a NaN or an infinity: the verdict is float64's, and the tensor is named."""

    def weights(self, name, element, value, model=None):
        self.accepted(self.execute("generate-weights", model or self.model(), "--output", "w.safetensors"))
        data = bytearray((self.folder / "w.safetensors").read_bytes())
        (length,) = struct.unpack("<Q", data[:8])
        begin = json.loads(data[8:8 + length])[name]["data_offsets"][0] + 8 + length
        data[begin + 4 * element:begin + 4 * element + 4] = struct.pack("<f", value)
        return self.file("w.safetensors", bytes(data))

    def test_outputs_are_not_finite(self):
        _, err = self.accepted(self.run_tiny("--weights", self.weights("conv2.weight", 5, math.nan), "--samples", "2"))
        self.assertEqual(err.count('weights: tensor "conv2.weight" holds nan at element 5, wanted finite numbers'), 1)
        self.assertIn("outputs are not finite either", err)

    def test_what_an_activation_hides_is_told_with_full(self):
        model = self.file("s.json", harness.graph(lambda graph: graph["nodes"][1].update(op="Sigmoid")))
        weights = self.weights("conv1.bias", 1, math.inf, model)
        _, err = self.accepted(self.run_tiny("--weights", weights, "--samples", "2", model=model))
        self.assertNotIn("weights: tensor", err)
        _, err = self.accepted(self.run_tiny("--weights", weights, "--samples", "2", "--verify", "full", model=model))
        self.assertIn('"conv1.bias" holds inf at element 1', err)
        self.assertNotIn("outputs are not", err)

    def test_a_verdict_that_comes_of_them(self):
        """oneDNN makes a NaN of what Relu makes 0 of in float64."""
        code, out, err = self.run_tiny("--weights", self.weights("conv1.bias", 2, -math.inf), "--samples", "2")
        if code == OK:
            self.skipTest("this oneDNN's Relu takes -inf")
        self.assertEqual(code, harness.WRONG, err)
        self.assertIn('weights: tensor "conv1.bias" holds -inf at element 2', out)

    def test_finite_ones_are_not_told(self):
        _, err = self.accepted(self.run_tiny("--weights", self.weights("conv1.bias", 0, 1e30), "--samples", "2", "--verify",
                                             "full"))
        self.assertNotIn("weights: tensor", err)


if __name__ == "__main__":
    harness.main()
