"""PyTorch's ways to run a model without compiling it, as contenders: eager, one CUDA graph from one
stream, one CUDA graph from a stream per branch; each in NCHW or channels-last. Compiled: torch_compile."""
import time

import torch
import torch.nn.functional as F

from contenders import Contender
import torch_graph

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def set_precision(precision):
    allowed = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True


WRITERS = ("Conv", "ConvTranspose", "Gemm", "BatchNormalization", "Add", "Mul")


class Net(torch_graph.TorchGraph):
    """The model with BatchNormalization folded, as one would write it for speed: activations in
    place where nobody else reads their input, values dropped after their last reader."""

    def __init__(self, graph, params, device, dtype, channels_last=False):
        super().__init__(graph, params, fold=True, dtype=dtype, device=device,
                         channels_last=channels_last)
        self.device, self.dtype = device, dtype
        producers, readers = self.graph.producers(), self.graph.consumers()
        self.in_place = {
            node.name for node in self.order
            if node.op == "Relu" and node.inputs[0] in producers
            and producers[node.inputs[0]].op in WRITERS and len(readers[node.inputs[0]]) == 1
            and node.inputs[0] not in self.graph.outputs}
        last = {name: node.name for node in self.order for name in node.inputs}
        self.dead_after = {node.name: [name for name in dict.fromkeys(node.inputs)
                                       if last[name] == node.name and name not in self.graph.outputs]
                           for node in self.order}

    def given(self, inputs):
        """Numpy inputs on the device, in the net's dtype and memory format."""
        tensors = [torch.from_numpy(x).to(self.device, self.dtype) for x in inputs]
        return list(self.bind(tensors).values())

    def run_node(self, node, values):
        if node.name in self.in_place:
            values[node.name] = F.relu_(values[node.inputs[0]])
        else:
            super().run_node(node, values)

    @torch.inference_mode()
    def forward(self, *inputs):
        values = dict(zip(self.graph.inputs, inputs))
        for node in self.order:
            self.run_node(node, values)
            for name in self.dead_after[node.name]:
                del values[name]
        return [values[name] for name in self.graph.outputs]


def assign_streams(nodes):
    """A stream per branch: a node goes on in the stream of the first input that no other node has
    gone on from, else it opens a new one. Returns {node name: stream index}."""
    stream_of, continued, count = {}, set(), 0
    for node in nodes:
        for name in node.inputs:
            if name in stream_of and name not in continued:
                continued.add(name)
                stream_of[node.name] = stream_of[name]
                break
        else:
            stream_of[node.name] = count
            count += 1
    return stream_of, count


def run_on_streams(net, inputs, streams, stream_of):
    """The outputs, each node on its stream (assign_streams), joined in the first."""
    # Every value is kept until the end: memory is not reused across streams.
    values, events = dict(zip(net.graph.inputs, inputs)), {}
    begin = streams[0].record_event()
    for node in net.order:
        stream = streams[stream_of[node.name]]
        for name in node.inputs:
            if name not in events:
                stream.wait_event(begin)
            elif stream_of[name] != stream_of[node.name]:
                stream.wait_event(events[name])
        with torch.cuda.stream(stream):
            net.run_node(node, values)
            events[node.name] = stream.record_event()
    for event in events.values():
        streams[0].wait_event(event)
    return [values[name] for name in net.graph.outputs]


class Eager(Contender):
    name = "torch.eager"
    how = ("device events around one forward pass; the sleep before it hides the launch of the first "
           "kernels only, so this is host-bound for small batches")

    device = "cuda"
    sleep_cycles = 200_000  # about 100 µs

    def __init__(self, graph, params, precision, inputs, layout):
        start = time.perf_counter()
        set_precision(precision)
        self.layout = layout
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.prepare(graph, params, DTYPES[precision], inputs)
        torch.cuda.synchronize()
        self.first_result_s = time.perf_counter() - start
        for _ in range(2):
            self.launch()
        torch.cuda.synchronize()

    def prepare(self, graph, params, dtype, inputs):
        """Everything up to a first result, which may still be on its way."""
        self.net = Net(graph, params, self.device, dtype, self.layout == "nhwc")
        self.inputs = self.net.given(inputs)
        self.results = self.net(*self.inputs)

    def launch(self):
        self.results = self.net(*self.inputs)

    def sample(self):
        torch.cuda.synchronize()
        torch.cuda._sleep(self.sleep_cycles)  # a kernel that only waits
        self.events[0].record()
        self.launch()
        self.events[1].record()
        torch.cuda.synchronize()
        return self.events[0].elapsed_time(self.events[1]) * 1e3

    def host_sample(self):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        self.launch()
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - start) / 1e3

    def outputs(self):
        self.launch()
        torch.cuda.synchronize()
        return [r.float().cpu().numpy() for r in self.results]

    def details(self):
        return {"layout": self.layout, "streams": 1, "version": torch.__version__}


class CudaGraph(Eager):
    name = "torch.cudagraph"
    how = "device events around one replay, the device busy until just before"

    def prepare(self, *what):
        super().prepare(*what)
        for _ in range(2):  # libraries choose and allocate before the capture
            super().launch()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        self.capture()
        self.launch()

    def capture(self):
        with torch.cuda.graph(self.graph):
            self.results = self.net(*self.inputs)

    def launch(self):
        self.graph.replay()


class CudaGraphStreams(CudaGraph):
    name = "torch.cudagraph_streams"

    def capture(self):
        stream_of, self.count = assign_streams(self.net.order)
        streams = [torch.cuda.Stream() for _ in range(self.count)]
        with torch.inference_mode(), torch.cuda.graph(self.graph, stream=streams[0]):
            self.results = run_on_streams(self.net, self.inputs, streams, stream_of)

    def details(self):
        return {**super().details(), "streams": self.count}


def reference(graph, params, inputs, device):
    """Outputs of the graph as written, nothing folded, in float64."""
    before, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, False
    net = torch_graph.TorchGraph(graph, params, dtype=torch.float64, device=device)
    given = [torch.from_numpy(x).to(device, torch.float64) for x in inputs]
    try:
        return [r.cpu().numpy() for r in net(*given)]
    finally:
        torch.backends.cudnn.benchmark = before


class CpuEager(Contender):
    name = "torch.cpu"
    how = "host clock around one forward pass"

    def __init__(self, graph, params, _, inputs, threads, layout):
        start = time.perf_counter()
        self.layout = layout
        torch.set_num_threads(threads)
        self.prepare(graph, params, inputs)
        self.sample()
        self.first_result_s = time.perf_counter() - start

    def prepare(self, graph, params, inputs):
        self.net = Net(graph, params, "cpu", torch.float32, self.layout == "nhwc")
        self.inputs = self.net.given(inputs)

    def sample(self):
        start = time.perf_counter_ns()
        self.results = self.net(*self.inputs)
        return (time.perf_counter_ns() - start) / 1e3

    host_sample = sample

    def outputs(self):
        self.sample()
        return [r.numpy().copy() for r in self.results]

    def details(self):
        return {"layout": self.layout, "version": torch.__version__, "threads": torch.get_num_threads(), "streams": 1}
