"""Reads convsched.graph/1 for the Python tools: nodes in topological order with every attribute
filled in, shapes, parameters. The strict validation is the C loader's; this reader trusts its
input. Standard library only."""

import dataclasses
import json
import math


@dataclasses.dataclass
class Node:
    name: str
    op: str
    inputs: list
    attrs: dict


@dataclasses.dataclass
class Graph:
    name: str
    inputs: dict  # name -> shape, None for a symbolic batch
    nodes: list  # topological order
    outputs: list

    def consumers(self):
        """Value name -> nodes that read it."""
        readers = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.inputs):
                readers.setdefault(value, []).append(node)
        return readers

    def producers(self):
        return {node.name: node for node in self.nodes}


WINDOW_DEFAULTS = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
DEFAULTS = {
    "Conv": {**WINDOW_DEFAULTS, "group": 1, "bias": True},
    "ConvTranspose": {**WINDOW_DEFAULTS, "group": 1, "bias": True, "output_padding": [0, 0]},
    "Gemm": {"bias": True},
    "BatchNormalization": {"epsilon": 1e-5},
    "InstanceNormalization": {"epsilon": 1e-5},
    "LeakyRelu": {"alpha": 0.01},
    "Elu": {"alpha": 1.0},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Swish": {"alpha": 1.0},
    "Clip": {"min": -math.inf, "max": math.inf},
    "MaxPool": {**WINDOW_DEFAULTS, "ceil_mode": False},
    "AveragePool": {**WINDOW_DEFAULTS, "ceil_mode": False, "count_include_pad": False},
    "LRN": {"alpha": 0.0001, "beta": 0.75, "bias": 1.0},
    "Softmax": {"axis": -1},
    "Flatten": {"axis": 1},
    "Pad": {"value": 0.0, "mode": "constant"},
    "Transpose": {"input_shape": None, "output_shape": None},
    "Slice": {"axes": None, "steps": None},
    "Resize": {"scales": None, "mode": "nearest", "coordinate_transformation_mode": "half_pixel",
               "nearest_mode": "round_prefer_floor", "cubic_coeff_a": -0.75, "exclude_outside": False,
               "antialias": False,
               "roi": [0, 0, 0, 0], "extrapolation_value": 0.0},
}


DEFAULTS.update({f"Reduce{how}": {"axes": None, "keepdims": True} for how in ("Mean", "Sum", "Max", "Min")})
BINARY = ("Add", "Mul", "Sub", "Div", "Max", "Min", "Pow", "PRelu")
DEFAULTS.update({op: {"operand": None, "operand_first": False} for op in BINARY})


def load(path):
    with open(path, encoding="utf-8") as file:
        return parse(json.load(file))


def parse(document):
    inputs = {entry["name"]: [None if extent == "N" else extent for extent in entry["shape"]]
              for entry in document["inputs"]}
    waiting = [Node(entry["name"], entry["op"], entry["inputs"],
                    {**DEFAULTS.get(entry["op"], {}), **entry.get("attrs", {})})
               for entry in document["nodes"]]
    known, ordered = set(inputs), []
    while waiting:
        ready = [node for node in waiting if all(value in known for value in node.inputs)]
        if not ready:
            raise ValueError(f"{document['name']}: a cycle or a dangling name")
        ordered.extend(ready)
        known.update(node.name for node in ready)
        waiting = [node for node in waiting if node.name not in known]
    return Graph(document["name"], inputs, ordered, document["outputs"])


# ---- Shapes ----


def window_extent(extent, kernel, stride, dilation, pad_begin, pad_end, ceil_mode=False):
    """With ceil_mode a last window that would start in the end padding is dropped."""
    room = extent + pad_begin + pad_end - (dilation * (kernel - 1) + 1)
    if not ceil_mode:
        return room // stride + 1
    out = -(-room // stride) + 1
    return out - 1 if (out - 1) * stride >= extent + pad_begin else out


def window_shape(attrs, shape):
    return [window_extent(shape[2 + axis], attrs["kernel_shape"][axis], attrs["strides"][axis],
                          attrs["dilations"][axis], attrs["pads"][axis], attrs["pads"][2 + axis],
                          bool(attrs.get("ceil_mode", False))) for axis in range(2)]


def transposed_shape(attrs, shape):
    return [(shape[2 + axis] - 1) * attrs["strides"][axis]
            + attrs["dilations"][axis] * (attrs["kernel_shape"][axis] - 1) + 1
            + attrs["output_padding"][axis] - attrs["pads"][axis] - attrs["pads"][2 + axis]
            for axis in range(2)]


def node_shape(node, shapes):
    attrs, first = node.attrs, shapes[0]
    if node.op == "Conv":
        return [first[0], attrs["out_channels"], *window_shape(attrs, first)]
    if node.op == "ConvTranspose":
        return [first[0], attrs["out_channels"], *transposed_shape(attrs, first)]
    if node.op in ("MaxPool", "AveragePool"):
        return [first[0], first[1], *window_shape(attrs, first)]
    if node.op.startswith("Reduce"):
        axes = {axis % len(first) for axis in attrs["axes"] or range(len(first))}
        return [1 if i in axes else extent for i, extent in enumerate(first) if i not in axes or attrs["keepdims"]]
    if node.op in ("GlobalAveragePool", "GlobalMaxPool"):
        return [first[0], first[1], 1, 1]
    if node.op == "Gemm":
        return [first[0], attrs["out_features"]]
    if node.op == "Flatten":
        axis = attrs["axis"] % len(first)
        if axis == 0:
            raise ValueError(f"{node.name}: Flatten of axis 0 would merge the batch")
        return [math.prod(first[:axis]), math.prod(first[axis:])]
    if node.op == "Concat":
        axis = attrs["axis"] % len(first)
        return [sum(shape[i] for shape in shapes) if i == axis else extent
                for i, extent in enumerate(first)]
    if node.op == "Pad":
        half = len(first)
        return [extent + attrs["pads"][i] + attrs["pads"][half + i]
                for i, extent in enumerate(first)]
    if node.op == "Reshape":
        return bound_shape(attrs["shape"], first)
    if node.op == "Transpose":
        split = bound_shape(attrs["input_shape"] or first, first)
        return bound_shape(attrs["output_shape"] or [split[axis] for axis in attrs["perm"]], first)
    if node.op == "Slice":
        return [len(taken) for taken in sliced_indices(attrs, first)]
    if node.op == "Resize":
        return [*first[:2], *attrs["sizes"]]
    if node.op in BINARY:
        return broadcast_shape(first, attrs["operand"] or shapes[1])
    return list(first)


def bound_shape(shape, first):
    """A shape in attributes, in which "N" is the input's first extent."""
    return [first[0] if extent == "N" else extent for extent in shape]


def sliced_indices(attrs, shape):
    """What a Slice takes of each axis."""
    taken = [range(extent) for extent in shape]
    axes, n = attrs["axes"], len(attrs["starts"])
    for axis, start, end, step in zip(range(n) if axes is None else axes, attrs["starts"], attrs["ends"],
                                      attrs["steps"] or [1] * n):
        taken[axis] = taken[axis][start:end:step]
    return taken


def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    return [y if x == 1 else x for x, y in zip(a, b)]


def input_shapes(graph, batch=1):
    """Input name -> shape with the symbolic batch bound."""
    return {name: [batch if extent is None else extent for extent in shape]
            for name, shape in graph.inputs.items()}


def infer_shapes(graph, batch=1):
    """Value name -> shape with the symbolic batch bound."""
    shapes = input_shapes(graph, batch)
    for node in graph.nodes:
        shapes[node.name] = node_shape(node, [shapes[value] for value in node.inputs])
    return shapes


# ---- Parameters ----


def parameter_shapes(graph, shapes=None):
    """Parameter name -> shape, in PyTorch's names and shapes, node by node."""
    shapes = shapes or infer_shapes(graph)
    result = {}
    for node in graph.nodes:
        channels, attrs = (shapes[node.inputs[0]] + [0])[1], node.attrs
        if node.op == "Conv":
            outer = [attrs["out_channels"], channels // attrs["group"]]
        elif node.op == "ConvTranspose":
            outer = [channels, attrs["out_channels"] // attrs["group"]]
        if node.op in ("Conv", "ConvTranspose"):
            result[node.name + ".weight"] = outer + list(attrs["kernel_shape"])
            if attrs["bias"]:
                result[node.name + ".bias"] = [attrs["out_channels"]]
        elif node.op == "Gemm":
            result[node.name + ".weight"] = [attrs["out_features"], channels]
            if attrs["bias"]:
                result[node.name + ".bias"] = [attrs["out_features"]]
        elif node.op == "BatchNormalization":
            for what in ("weight", "bias", "running_mean", "running_var"):
                result[f"{node.name}.{what}"] = [channels]
        elif node.op == "InstanceNormalization":
            result[node.name + ".weight"] = result[node.name + ".bias"] = [channels]
        elif node.op in BINARY and attrs["operand"]:
            result[node.name + ".weight"] = list(attrs["operand"])
    return result
