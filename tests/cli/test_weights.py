"""How much memory the weights take; files of them that are written while they are in use."""
import os
import pathlib
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


if __name__ == "__main__":
    harness.main()
