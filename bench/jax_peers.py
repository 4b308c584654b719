"""The model compiled by XLA (jax.jit), as contenders: on a GPU and on the CPU."""
import os
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others in the process need memory too

import jax
import jax.numpy as jnp

import jax_graph
from contenders import Contender

# 'highest' is float32 proper, 'tensorfloat32' lets the libraries use TF32; halves have no choice.
PRECISIONS = {"f32": "highest", "tf32": "tensorfloat32"}
# A stream holds about a thousand kernels that have not begun; the host waits for room when it is full.
KERNELS = 900
BUSY_EXTENT, BUSY_PRODUCTS, MOST_BUSY = 2048, 4, 16


class Jax(Contender):
    """Parameters and input are arguments of the compiled function, on the device, as its layout wants them."""
    name = "jax.jit"
    kind = "gpu"
    how = ("host clock: (busy kernels, then chain + 1 calls, each after the one before) minus (as many busy kernels, "
           "then one call), over chain. The busy kernels hide launching, as they do where device events are used, and "
           "the difference leaves waiting out; XLA has no device events")

    def __init__(self, graph, params, precision, inputs, layout):
        start = time.perf_counter()
        self.layout = layout
        self.device = jax.devices(self.kind)[0]
        with jax.default_device(self.device), jax.default_matmul_precision(PRECISIONS.get(precision, "default")):
            self.net = jax_graph.JaxGraph(graph, params, layout, precision)
            self.inputs = self.net.given(inputs)
            made = jax.eval_shape(self.net, self.net.params, self.inputs)[0]
            self.begin = jnp.zeros(made.shape, made.dtype)
            # `after` is not read, yet waited for: that puts calls one after the other.
            function = jax.jit(lambda params, given, after: self.net(params, given), keep_unused=True)
            self.function = function.lower(self.net.params, self.inputs, self.begin).compile()
            self.call(self.begin).block_until_ready()
        self.first_result_s = time.perf_counter() - start
        self.call(self.begin).block_until_ready()
        self.calibrate()

    def call(self, after):
        self.results = self.function(self.net.params, self.inputs, after)
        return self.results[0]

    def calibrate(self):
        """How many calls make a chain, and how many busy steps: the least after which twice as many bring nothing."""
        self.chain = max(1, min(8, KERNELS // len(self.net.graph.nodes) - 1))

        def busy(matrix, after):
            for _ in range(BUSY_PRODUCTS):  # a few long kernels, which leave most of the cache alone
                matrix = jnp.dot(matrix, matrix, precision="highest")
            return matrix, jnp.full(after.shape, matrix[0, 0], after.dtype)

        with jax.default_device(self.device):
            self.matrix = jnp.full((BUSY_EXTENT, BUSY_EXTENT), 1 / BUSY_EXTENT, jnp.float32)
            self.busy = jax.jit(busy, keep_unused=True).lower(self.matrix, self.begin).compile()
        found = {}
        for self.steps in (1, 2, 4, 8, MOST_BUSY):
            found[self.steps] = statistics.median(self.sample() for _ in range(5))
            if found[self.steps] > 0.98 * found.get(self.steps // 2, float("inf")):
                self.steps = self.steps // 2 if found[self.steps] > found[self.steps // 2] else self.steps
                break

    def timed(self, calls):
        """Microseconds of busy steps and calls, from the first one's launch to the last one's end."""
        matrix, after = self.matrix, self.begin
        start = time.perf_counter_ns()
        for _ in range(self.steps):
            matrix, after = self.busy(matrix, after)
        for _ in range(calls):
            after = self.call(after)
        after.block_until_ready()
        return (time.perf_counter_ns() - start) / 1e3

    def sample(self):
        one = self.timed(1)
        return max(0.0, (self.timed(self.chain + 1) - one) / self.chain)  # less than nothing is noise

    def host_sample(self):
        start = time.perf_counter_ns()
        jax.block_until_ready(self.call(self.begin))
        return (time.perf_counter_ns() - start) / 1e3

    def outputs(self):
        self.call(self.begin)
        return self.net.taken(self.results)

    def details(self):
        return {"layout": self.layout, "version": jax.__version__, "weights": "arguments",
                "chain": self.chain, "busy_steps": self.steps}

    def close(self):
        self.function = self.net = self.inputs = self.results = None  # gives the memory back
        jax.clear_caches()


class JaxCpu(Jax):
    name = "jax.cpu"
    kind = "cpu"
    how = "host clock around one call"

    def calibrate(self):
        pass

    def sample(self):
        return self.host_sample()

    def details(self):
        return {"layout": self.layout, "version": jax.__version__, "weights": "arguments"}
