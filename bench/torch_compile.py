"""torch.compile as contenders: mode reduce-overhead (Inductor's kernels in CUDA graphs), the input
given afresh to each call or lying still; mode max-autotune."""
import statistics
import time

import torch

import torch_graph
from torch_peers import CpuEager, Eager

# Each contender is a compilation of the same forward function; the default would stop at the eighth.
torch._dynamo.config.recompile_limit = 256
CYCLES_PER_US = 2000  # of the fastest device
MOST_CYCLES = 10_000 * CYCLES_PER_US


class Plain(torch_graph.TorchGraph):
    """The model with BatchNormalization folded, without what only helps uncompiled code."""

    def __init__(self, graph, params, device, dtype, channels_last=False):
        super().__init__(graph, params, fold=True, dtype=dtype, device=device,
                         channels_last=channels_last)
        self.device, self.dtype = device, dtype
        self.requires_grad_(False)

    def given(self, inputs):
        tensors = [torch.from_numpy(x).to(self.device, self.dtype) for x in inputs]
        return list(self.bind(tensors).values())

    def forward(self, *inputs):
        values = dict(zip(self.graph.inputs, inputs))
        for node in self.order:
            self.run_node(node, values)
        return [values[name] for name in self.graph.outputs]


def compiled(net, mode):
    return torch.compile(net, mode=mode, dynamic=False, fullgraph=True)


class Compile(Eager):
    """The input may be another one at each call: two take turns, and the graph copies them into its own."""
    name = "torch.compile"
    how = ("device events around one call, the device busy until just before for longer than the call "
           "takes on the host; a copy of the input into the CUDA graph's own is part of it")
    mode = "reduce-overhead"

    def __init__(self, *what):
        super().__init__(*what)
        # The guards of a compiled function take hundreds of microseconds; the device is to be busy for twice that.
        self.enqueue_us = statistics.median(self.enqueue() for _ in range(7))
        self.sleep_cycles = int(min(max(self.sleep_cycles, 2 * CYCLES_PER_US * self.enqueue_us), MOST_CYCLES))

    def enqueue(self):
        """How long the host takes for a call that it does not wait for, microseconds."""
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        self.launch()
        return (time.perf_counter_ns() - start) / 1e3

    def prepare(self, graph, params, dtype, inputs):
        self.net = Plain(graph, params, self.device, dtype, self.layout == "nhwc")
        self.function = compiled(self.net, self.mode)
        self.turns = self.place(inputs)
        for _ in range(3):  # compiles, warms up, records the CUDA graph
            self.launch()

    def place(self, inputs):
        return [self.net.given(inputs) for _ in range(2)]

    def launch(self):
        self.turns.append(self.turns.pop(0))
        torch.compiler.cudagraph_mark_step_begin()  # earlier outputs may be overwritten
        with torch.no_grad():
            self.results = self.function(*self.turns[0])

    def details(self):
        return {**super().details(), "mode": self.mode, "enqueue_us": self.enqueue_us}

    def close(self):
        torch._dynamo.reset()  # gives back the CUDA graphs' memory; all compiled ones end together


class CompileStatic(Compile):
    """The input lies where it lay when the CUDA graph was recorded."""
    name = "torch.compile_static"
    how = ("device events around one call, the device busy until just before for longer than the call "
           "takes on the host; nothing is copied: the input is marked static")

    def place(self, inputs):
        tensors = self.net.given(inputs)
        for tensor in tensors:
            torch._dynamo.mark_static_address(tensor)
        return [tensors]

    def details(self):
        return {**super().details(), "prepare_reuses": "torch.compile"}  # its kernels, from the compiler's cache


class MaxAutotune(CompileStatic):
    name = "torch.compile_max_autotune"
    mode = "max-autotune"

    def details(self):
        return {**super().details(), "prepare_reuses": None}  # has a process of its own


class CpuCompile(CpuEager):
    name = "torch.cpu_compile"

    def prepare(self, graph, params, inputs):
        self.plain = Plain(graph, params, "cpu", torch.float32, self.layout == "nhwc")
        self.inputs = self.plain.given(inputs)
        self.net = compiled(self.plain, "default")

    def sample(self):
        with torch.no_grad():
            return super().sample()

    host_sample = sample

    def close(self):
        torch._dynamo.reset()
