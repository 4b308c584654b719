"""PyTorch's ways to run a model, as contenders: eager, one CUDA graph from one stream, one CUDA
graph from a stream per branch; each in NCHW and in channels-last."""
import time

import numpy
import torch
import torch.nn.functional as F

from contenders import Contender

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f64": torch.float64}
SLEEP_CYCLES = 200_000  # about 100 µs of a kernel that only waits


def set_precision(precision):
    allowed = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True


def _symmetric(node):
    """Pads per axis, where begin and end are equal."""
    pads = node["attrs"].get("pads", [0, 0, 0, 0])
    if pads[:2] != pads[2:]:
        raise ValueError(f"{node['name']}: asymmetric pads {pads} have no direct PyTorch call")
    return pads[:2]


def _conv(node, x, p):
    a = node["attrs"]
    return F.conv2d(x, p["weight"], p.get("bias"), a.get("strides", 1), _symmetric(node),
                    a.get("dilations", 1), a.get("group", 1))


def _conv_transpose(node, x, p):
    a = node["attrs"]
    return F.conv_transpose2d(x, p["weight"], p.get("bias"), a.get("strides", 1), _symmetric(node),
                              a.get("output_padding", 0), a.get("group", 1), a.get("dilations", 1))


def _max_pool(node, x, _):
    a = node["attrs"]
    return F.max_pool2d(x, a["kernel_shape"], a.get("strides", 1), _symmetric(node),
                        a.get("dilations", 1), a.get("ceil_mode", False))


def _average_pool(node, x, _):
    a = node["attrs"]
    return F.avg_pool2d(x, a["kernel_shape"], a.get("strides", 1), _symmetric(node),
                        a.get("ceil_mode", False), a.get("count_include_pad", False))


def _lrn(node, x, _):
    a = node["attrs"]
    return F.local_response_norm(x, a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0))


OPERATORS = {
    "Conv": _conv, "ConvTranspose": _conv_transpose, "MaxPool": _max_pool,
    "AveragePool": _average_pool, "LRN": _lrn,
    "Gemm": lambda n, x, p: F.linear(x, p["weight"], p.get("bias")),
    "BatchNormalization": lambda n, x, p: torch.addcmul(p["shift"], x, p["scale"]),
    "Relu": lambda n, x, p: F.relu(x, inplace=n["inplace"]),
    "LeakyRelu": lambda n, x, p: F.leaky_relu(x, n["attrs"].get("alpha", 0.01), inplace=n["inplace"]),
    "Clip": lambda n, x, p: torch.clamp(x, n["attrs"]["min"], n["attrs"]["max"]),
    "Sigmoid": lambda n, x, p: torch.sigmoid(x),
    "Tanh": lambda n, x, p: torch.tanh(x),
    "GlobalAveragePool": lambda n, x, p: x.mean((2, 3), keepdim=True),
    "Softmax": lambda n, x, p: F.softmax(x, n["attrs"].get("axis", -1)),
    "Flatten": lambda n, x, p: torch.flatten(x, n["attrs"].get("axis", 1)),
}
BINARY = {"Add": torch.add, "Mul": torch.mul}


class Net(torch.nn.Module):
    """The model's nodes in order, on a device, in a dtype and a memory format."""

    def __init__(self, model, device, dtype, channels_last):
        super().__init__()
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.inputs = [i["name"] for i in model.inputs]
        self.output_names = model.outputs
        self.params = {}
        readers = model.consumers()
        self.nodes = []
        for node in model.nodes:
            source = node["inputs"][0]
            inplace = readers[source] == [node["name"]] and source not in self.inputs
            self.nodes.append(dict(node, inplace=inplace))
            self.params[node["name"]] = self._parameters(model, node, device, dtype)

    def _parameters(self, model, node, device, dtype):
        if node["op"] == "BatchNormalization":
            scale, shift = model.batch_normalization(node)
            found = {"scale": scale.reshape(1, -1, 1, 1), "shift": shift.reshape(1, -1, 1, 1)}
        else:
            found = {what: model.params[f"{node['name']}.{what}"] for what in ("weight", "bias")
                     if f"{node['name']}.{what}" in model.params}
        return {what: self.tensor(values, device, dtype) for what, values in found.items()}

    def tensor(self, values, device, dtype):
        made = torch.as_tensor(values).to(device=device, dtype=dtype)
        return made.contiguous(memory_format=self.format) if made.dim() == 4 else made

    def apply_node(self, node, values):
        op, sources = node["op"], [values[name] for name in node["inputs"]]
        if op == "Concat":
            return torch.cat(sources, node["attrs"]["axis"])
        if op in BINARY:
            return BINARY[op](*sources)
        return OPERATORS[op](node, sources[0], self.params[node["name"]])

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs))
        last = {name: node["name"] for node in self.nodes for name in node["inputs"]}
        for node in self.nodes:
            values[node["name"]] = self.apply_node(node, values)
            for name in set(node["inputs"]):
                if last[name] == node["name"] and name not in self.output_names:
                    del values[name]
        return [values[name] for name in self.output_names]


def assign_streams(nodes):
    """A stream per branch: a node goes on in the stream of the first input that no other node has
    gone on from, else it opens a new one. Returns {node name: stream index}."""
    stream_of, continued, count = {}, set(), 0
    for node in nodes:
        for name in node["inputs"]:
            if name in stream_of and name not in continued:
                continued.add(name)
                stream_of[node["name"]] = stream_of[name]
                break
        else:
            stream_of[node["name"]] = count
            count += 1
    return stream_of, count


class Eager(Contender):
    name = "torch.eager"
    how = ("device events around one forward pass; the sleep before it hides the launch of the first "
           "kernels only, so this is host-bound for small batches")

    def __init__(self, net, inputs):
        self.net, self.layout = net, "nhwc" if net.format == torch.channels_last else "nchw"
        self.inputs = inputs
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        with torch.inference_mode():
            for _ in range(3):
                self.results = self.net(*self.inputs)
        torch.cuda.synchronize()

    def launch(self):
        with torch.inference_mode():
            self.results = self.net(*self.inputs)

    def sample(self):
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP_CYCLES)
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

    def __init__(self, net, inputs):
        super().__init__(net, inputs)
        self.graph = torch.cuda.CUDAGraph()
        self.capture()
        self.launch()
        torch.cuda.synchronize()

    def capture(self):
        with torch.inference_mode(), torch.cuda.graph(self.graph):
            self.results = self.net(*self.inputs)

    def launch(self):
        self.graph.replay()


class CudaGraphStreams(CudaGraph):
    name = "torch.cudagraph_streams"

    def capture(self):
        stream_of, self.count = assign_streams(self.net.nodes)
        main = torch.cuda.Stream()
        streams = [main] + [torch.cuda.Stream() for _ in range(self.count - 1)]
        # Every value is kept until the end: memory is not reused across streams.
        values, events = dict(zip(self.net.inputs, self.inputs)), {}
        with torch.inference_mode(), torch.cuda.graph(self.graph, stream=main):
            begin = main.record_event()
            for node in self.net.nodes:
                index = stream_of[node["name"]]
                stream = streams[index]
                waits = [events[n] for n in node["inputs"] if n in events and stream_of[n] != index]
                if not any(n in events for n in node["inputs"]) and index != 0:
                    waits.append(begin)
                for event in waits:
                    stream.wait_event(event)
                with torch.cuda.stream(stream):
                    values[node["name"]] = self.net.apply_node(node, values)
                    events[node["name"]] = stream.record_event()
            for event in events.values():
                main.wait_event(event)
            self.results = [values[name] for name in self.net.output_names]

    def details(self):
        return {**super().details(), "streams": self.count}


MODES = (Eager, CudaGraph, CudaGraphStreams)


def contenders(model, precision, inputs):
    """Every mode in both layouts; they all hold the same weights and input."""
    set_precision(precision)
    made = []
    for channels_last in (False, True):
        net = Net(model, "cuda", DTYPES[precision], channels_last)
        given = [net.tensor(x, "cuda", DTYPES[precision]) for x in inputs]
        made += [mode(net, given) for mode in MODES]
    return made


def reference(model, inputs, device):
    """Outputs in float64."""
    net = Net(model, device, torch.float64, False)
    with torch.inference_mode():
        given = [net.tensor(x, device, torch.float64) for x in inputs]
        return [r.cpu().numpy().astype(numpy.float64) for r in net(*given)]


class CpuEager(Contender):
    name = "torch.cpu"
    how = "host clock around one forward pass"

    def __init__(self, model, inputs, threads):
        torch.set_num_threads(threads)
        self.net = Net(model, "cpu", torch.float32, False)
        self.inputs = [self.net.tensor(x, "cpu", torch.float32) for x in inputs]

    def sample(self):
        start = time.perf_counter_ns()
        with torch.inference_mode():
            self.results = self.net(*self.inputs)
        return (time.perf_counter_ns() - start) / 1e3

    host_sample = sample

    def outputs(self):
        self.sample()
        return [r.numpy().copy() for r in self.results]

    def details(self):
        return {"version": torch.__version__, "threads": torch.get_num_threads(), "streams": 1}
