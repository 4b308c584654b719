"""Builds a torch module from a convsched graph and its parameters.

    module = TorchGraph(graph_json.load("models/googlenet.json"), state)
    outputs = module(inputs)                    # list, in the order of the graph's outputs

`state` maps parameter names to arrays (weights.generate, safetensors.numpy.load_file).
The module runs node by node in topological order through `run_node`, so that a caller may run
nodes on streams of its own choosing:

    for node in module.order:
        with torch.cuda.stream(stream_of[node.name]):
            module.run_node(node, values)       # reads and writes the dictionary `values`
"""

import numpy
import torch
import torch.nn.functional as F

import graph_json
from fold_norm import fold_batch_norm
from resize_weights import resize_weights


# ---- Operators: each takes (attributes, parameters, inputs) ----


def split_pads(pads):
    """ONNX pads {top, left, bottom, right} as (symmetric pair, rest for F.pad): torch's operators
    pad both sides of an axis alike, what is left goes through F.pad."""
    top, left, bottom, right = pads
    both = (min(top, bottom), min(left, right))
    rest = (left - both[1], right - both[1], top - both[0], bottom - both[0])
    return both, rest if any(rest) else None


def conv(attrs, params, x):
    padding, rest = split_pads(attrs["pads"])
    if rest:
        x = F.pad(x, rest)
    return F.conv2d(x, params["weight"], params.get("bias"), attrs["strides"], padding,
                    attrs["dilations"], attrs["group"])


def conv_transpose(attrs, params, x):
    """The pads of a transposed convolution crop its output: the symmetric part inside torch's
    operator, the rest by slicing."""
    top, left, bottom, right = attrs["pads"]
    strides, dilations, extra = attrs["strides"], attrs["dilations"], attrs["output_padding"]
    padding, rest = split_pads(attrs["pads"])
    if any(extra[i] >= max(strides[i], dilations[i]) for i in range(2)):
        raise ValueError("output_padding must be smaller than stride or dilation")
    y = F.conv_transpose2d(x, params["weight"], params.get("bias"), strides, padding, extra,
                           attrs["group"], dilations)
    if rest:
        crop_left, crop_right, crop_top, crop_bottom = rest
        y = y[:, :, crop_top:y.shape[2] - crop_bottom, crop_left:y.shape[3] - crop_right]
    return y


def gemm(_, params, x):
    return F.linear(x, params["weight"], params.get("bias"))


def batch_norm(attrs, params, x):
    if attrs["epsilon"] == 0:  # PyTorch refuses it
        channels = (1, -1) + (1,) * (x.dim() - 2)
        scale = params["weight"] * torch.rsqrt(params["running_var"])
        shift = params["bias"] - params["running_mean"] * scale
        return x * scale.view(channels) + shift.view(channels)
    return F.batch_norm(x, params["running_mean"], params["running_var"], params["weight"],
                        params["bias"], False, 0.0, attrs["epsilon"])


def pool_padding(attrs, x):
    """(pads to apply, pads counted by ceil_mode's extra windows): the extent that the windows need
    beyond the padded input is added at the end."""
    top, left, bottom, right = attrs["pads"]
    more = []
    for axis, (begin, end) in enumerate(((top, bottom), (left, right))):
        extent = x.shape[2 + axis]
        kernel, stride = attrs["kernel_shape"][axis], attrs["strides"][axis]
        dilation = attrs["dilations"][axis]
        windows = graph_json.window_extent(extent, kernel, stride, dilation, begin, end,
                                           bool(attrs["ceil_mode"]))
        reach = (windows - 1) * stride + dilation * (kernel - 1) + 1
        more.append(max(0, reach - (extent + begin + end)))
    return (left, right, top, bottom), (0, more[1], 0, more[0])


def native_pool(attrs):
    """Whether torch's pooling can take the pads itself."""
    top, left, bottom, right = attrs["pads"]
    kernel = attrs["kernel_shape"]
    return (top, left) == (bottom, right) and 2 * top <= kernel[0] and 2 * left <= kernel[1]


def max_pool(attrs, _, x):
    kernel, strides, dilations = attrs["kernel_shape"], attrs["strides"], attrs["dilations"]
    if native_pool(attrs):
        return F.max_pool2d(x, kernel, strides, attrs["pads"][:2], dilations,
                            bool(attrs["ceil_mode"]))
    pads, more = pool_padding(attrs, x)
    x = F.pad(F.pad(x, pads, value=-torch.inf), more, value=-torch.inf)
    return F.max_pool2d(x, kernel, strides, 0, dilations)


def average_pool(attrs, _, x):
    """Explicit padding with a divisor computed by pooling a mask; what ceil_mode's windows reach
    beyond the padded input never counts."""
    kernel, strides = attrs["kernel_shape"], attrs["strides"]
    if native_pool(attrs) and attrs["dilations"] == [1, 1]:
        return F.avg_pool2d(x, kernel, strides, attrs["pads"][:2], bool(attrs["ceil_mode"]),
                            bool(attrs["count_include_pad"]))
    pads, more = pool_padding(attrs, x)
    mask = x.new_ones((1, 1, *x.shape[2:]))
    mask = F.pad(F.pad(mask, pads, value=1.0 if attrs["count_include_pad"] else 0.0), more)
    x = F.pad(F.pad(x, pads), more)
    window = x.new_ones((1, 1, *kernel))
    channels = x.shape[1]
    sums = F.conv2d(x, window.expand(channels, 1, *kernel), None, strides, 0, attrs["dilations"],
                    channels)
    return sums / F.conv2d(mask, window, None, strides, 0, attrs["dilations"])


def instance_norm(attrs, params, x):
    return F.instance_norm(x, weight=params["weight"], bias=params["bias"], eps=attrs["epsilon"])


def reduction(function):
    def apply(attrs, _, x):
        axes = attrs["axes"] or list(range(x.dim()))
        return function(x, dim=axes, keepdim=attrs["keepdims"])
    return apply


def lrn(attrs, _, x):
    """ONNX sums the squares of channels c − ⌊(size − 1) / 2⌋ … c + ⌈(size − 1) / 2⌉. torch's own
    function agrees for odd sizes only."""
    size = attrs["size"]
    if size % 2:
        return F.local_response_norm(x, size, attrs["alpha"], attrs["beta"], attrs["bias"])
    before = (size - 1) // 2
    squares = F.pad(x * x, (0, 0, 0, 0, before, size - 1 - before))
    total = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return x / (attrs["bias"] + attrs["alpha"] / size * total) ** attrs["beta"]


def pad(attrs, _, x):
    half = x.dim()
    if attrs["mode"] != "constant":
        return pad_by_index(attrs, x)
    pads = [amount for axis in reversed(range(half))
            for amount in (attrs["pads"][axis], attrs["pads"][half + axis])]
    return F.pad(x, pads, value=attrs["value"])


def pad_by_index(attrs, x):
    """Reflected, repeated or wrapped, an axis after the other."""
    half = x.dim()
    for axis in range(half):
        begin, end = attrs["pads"][axis], attrs["pads"][half + axis]
        kept = range(x.shape[axis])[max(-begin, 0):x.shape[axis] + min(end, 0)]
        taken = numpy.pad(kept, (max(begin, 0), max(end, 0)), attrs["mode"])
        x = x.index_select(axis, torch.as_tensor(taken, device=x.device))
    return x


def reshape(attrs, _, x):
    return x.reshape(graph_json.bound_shape(attrs["shape"], x.shape))


def transpose(attrs, _, x):
    first = x.shape
    if attrs["input_shape"]:
        x = x.reshape(graph_json.bound_shape(attrs["input_shape"], first))
    x = x.permute(attrs["perm"])
    return x.reshape(graph_json.bound_shape(attrs["output_shape"], first)) if attrs["output_shape"] else x


def slice_(attrs, _, x):
    for axis, taken in enumerate(graph_json.sliced_indices(attrs, x.shape)):
        x = x.index_select(axis, torch.as_tensor(list(taken), device=x.device))
    return x


def is_torchs_antialias(attrs):
    """Whether F.interpolate means the same: it leaves out what is outside, and its cubic has a = -0.5."""
    return (attrs["antialias"] and attrs["exclude_outside"] and attrs["scales"] is None
            and attrs["coordinate_transformation_mode"] == "half_pixel"
            and (attrs["mode"] == "linear" or (attrs["mode"] == "cubic" and attrs["cubic_coeff_a"] == -0.5)))


def resize(attrs, _, x):
    """PyTorch's own, or along H, then along W, each a product with a matrix of weights."""
    if is_torchs_antialias(attrs):
        return F.interpolate(x, attrs["sizes"], mode=f"bi{attrs['mode']}", antialias=True)
    for axis in (0, 1):
        extent, scales = x.shape[2 + axis], attrs["scales"]
        matrix = resize_weights(attrs, axis, extent, scales[axis] if scales else attrs["sizes"][axis] / extent)
        outside = matrix[:, -1:]
        x = x.movedim(2 + axis, -1) @ torch.as_tensor(matrix[:, :-1], dtype=x.dtype, device=x.device).T
        x = x + torch.as_tensor(outside[:, 0] * attrs["extrapolation_value"], dtype=x.dtype, device=x.device)
        x = x.movedim(-1, 2 + axis)
    return x


def binary(function):
    """Of two inputs, or of one and a constant."""
    def apply(attrs, params, first, second=None):
        if second is None:
            second = params["weight"]
            if attrs["operand_first"]:
                first, second = second, first
        return function(first, second)
    return apply


OPERATORS = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Gemm": gemm,
    "BatchNormalization": batch_norm,
    "Relu": lambda a, p, x: F.relu(x),
    "LeakyRelu": lambda a, p, x: F.leaky_relu(x, a["alpha"]),
    "Clip": lambda a, p, x: torch.clamp(x, a["min"], a["max"]),
    "Sigmoid": lambda a, p, x: torch.sigmoid(x),
    "Tanh": lambda a, p, x: torch.tanh(x),
    "Add": binary(torch.add),
    "Mul": binary(torch.mul),
    "Sub": binary(torch.sub),
    "Div": binary(torch.div),
    "Max": binary(torch.maximum),
    "Min": binary(torch.minimum),
    "Pow": binary(torch.pow),
    "PRelu": binary(lambda x, slope: torch.where(x < 0, slope * x, x)),
    "Elu": lambda a, p, x: F.elu(x, a["alpha"]),
    "Selu": lambda a, p, x: a["gamma"] * F.elu(x, a["alpha"]),
    "HardSigmoid": lambda a, p, x: torch.clamp(a["alpha"] * x + a["beta"], 0, 1),
    "HardSwish": lambda a, p, x: F.hardswish(x),
    "Swish": lambda a, p, x: x * torch.sigmoid(a["alpha"] * x),
    "Sqrt": lambda a, p, x: torch.sqrt(x),
    "Abs": lambda a, p, x: torch.abs(x),
    "Neg": lambda a, p, x: -x,
    "Exp": lambda a, p, x: torch.exp(x),
    "Softplus": lambda a, p, x: F.softplus(x),
    "Erf": lambda a, p, x: torch.erf(x),
    "Gelu": lambda a, p, x: F.gelu(x),
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": lambda a, p, x: F.adaptive_avg_pool2d(x, 1),
    "GlobalMaxPool": lambda a, p, x: F.adaptive_max_pool2d(x, 1),
    "ReduceMean": reduction(torch.mean),
    "ReduceSum": reduction(torch.sum),
    "ReduceMax": reduction(torch.amax),
    "ReduceMin": reduction(torch.amin),
    "InstanceNormalization": instance_norm,
    "LRN": lrn,
    "Softmax": lambda a, p, x: torch.softmax(x, a["axis"]),
    "Concat": lambda a, p, *inputs: torch.cat(inputs, a["axis"]),
    "Flatten": lambda a, p, x: torch.flatten(x, a["axis"]),
    "Pad": pad,
    "Reshape": reshape,
    "Transpose": transpose,
    "Slice": slice_,
    "Resize": resize,
    "Identity": lambda a, p, x: x,
    "Dropout": lambda a, p, x: x,
}


# ---- The module ----


class Operation(torch.nn.Module):
    """One node with its parameters as buffers."""

    def __init__(self, node, params):
        super().__init__()
        self.operator, self.attrs, self.names = OPERATORS[node.op], node.attrs, list(params)
        for name, tensor in params.items():
            self.register_buffer(name, tensor)

    def forward(self, *inputs):
        return self.operator(self.attrs, {name: getattr(self, name) for name in self.names},
                             *inputs)


class TorchGraph(torch.nn.Module):
    """`order`: the nodes in topological order; `graph`: the graph they are of (folded or not)."""

    def __init__(self, graph, state, fold=False, dtype=torch.float32, device="cpu",
                 channels_last=False):
        super().__init__()
        if fold:
            graph, state = fold_batch_norm(graph, state)
        self.graph, self.order = graph, graph.nodes
        self.memory_format = (torch.channels_last if channels_last
                              else torch.contiguous_format)
        params = {node.name: {} for node in self.order}
        for name, shape in graph_json.parameter_shapes(graph).items():
            node_name, _, what = name.rpartition(".")
            tensor = torch.as_tensor(state[name])
            if list(tensor.shape) != list(shape):
                raise ValueError(f"{name}: shape {list(tensor.shape)}, wanted {list(shape)}")
            params[node_name][what] = self.arrange(tensor.to(device=device, dtype=dtype))
        self.operations = torch.nn.ModuleList(Operation(node, params[node.name])
                                              for node in self.order)
        self.position = {node.name: index for index, node in enumerate(self.order)}

    def arrange(self, tensor):
        """The tensor in the module's memory format."""
        return tensor.contiguous(memory_format=self.memory_format) if tensor.dim() == 4 else tensor

    def bind(self, inputs):
        """The dictionary of values that run_node works on, holding the graph's inputs."""
        return {name: self.arrange(tensor)
                for name, tensor in zip(self.graph.inputs, inputs, strict=True)}

    def run_node(self, node, values):
        operation = self.operations[self.position[node.name]]
        values[node.name] = operation(*[values[name] for name in node.inputs])

    @torch.no_grad()
    def forward(self, *inputs):
        values = self.bind(inputs)
        for node in self.order:
            self.run_node(node, values)
        return [values[name] for name in self.graph.outputs]
