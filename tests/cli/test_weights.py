"""How much memory the weights take."""
import os
import subprocess

import harness
from harness import OK, CommandTest

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


if __name__ == "__main__":
    harness.main()
