"""Builds graphs of convsched.graph/1 node by node, and writes them as models/*.json are written.
Standard library only."""

import json
import sys


def pair(value):
    return list(value) if isinstance(value, (tuple, list)) else [value, value]


def four(pad):
    """Pads top, left, bottom, right of one number, (H, W), or all four."""
    pads = pair(pad)
    return pads if len(pads) == 4 else pads + pads


def write_or_compare(files, check, tool):
    """Writes (path, text) files or, with `check`, names on stderr those that are not so; a tool's exit code."""
    stale = []
    for path, text in files:
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path))
    for path in stale:
        print(f"{path}: differs from what {tool} writes", file=sys.stderr)
    return 1 if stale else 0


def document_text(document):
    """The graph's file: one node a line, so that a change is a readable diff."""
    line = json.dumps
    nodes = ",\n".join("    " + line(node) for node in document["nodes"])
    return (f'{{\n  "schema": {line(document["schema"])},\n  "name": {line(document["name"])},\n'
            f'  "inputs": {line(document["inputs"])},\n  "nodes": [\n{nodes}\n  ],\n'
            f'  "outputs": {line(document["outputs"])}\n}}\n')


class Builder:
    """Collects nodes; every method returns the name of the value it made. Tracks channels and
    counts trainable parameters on the way."""

    def __init__(self, name, input_name, shape):
        self.name, self.input, self.shape = name, input_name, shape
        self.nodes = []
        self.channels = {input_name: shape[1]}
        self.parameters = 0

    def node(self, name, op, inputs, channels, **attrs):
        if name in self.channels:
            raise ValueError(f"{self.name}: duplicate name {name}")
        node = {"name": name, "op": op, "inputs": list(inputs)}
        if attrs:
            node["attrs"] = attrs
        self.nodes.append(node)
        self.channels[name] = channels
        return name

    def conv(self, name, x, out, kernel, stride=1, pad=0, bias=True, op="Conv", group=1):
        kernel = pair(kernel)
        self.parameters += (self.channels[x] // group * out * kernel[0] * kernel[1]
                            + (out if bias else 0))
        attrs = {"out_channels": out, "kernel_shape": kernel, "strides": pair(stride),
                 "pads": four(pad), "dilations": [1, 1], "group": group, "bias": bias}
        if op == "ConvTranspose":
            attrs["output_padding"] = [0, 0]
        return self.node(name, op, [x], out, **attrs)

    def norm(self, name, x, epsilon=1e-5):
        self.parameters += 2 * self.channels[x]
        return self.node(name, "BatchNormalization", [x], self.channels[x], epsilon=epsilon)

    def unary(self, name, op, x, **attrs):
        return self.node(name, op, [x], self.channels[x], **attrs)

    def relu(self, name, x):
        return self.unary(name, "Relu", x)

    def max_pool(self, name, x, kernel, stride, pad=0, ceil=False):
        return self.unary(name, "MaxPool", x, kernel_shape=pair(kernel), strides=pair(stride),
                          pads=four(pad), ceil_mode=ceil)

    def average_pool(self, name, x, kernel, stride, pad=0, include_pad=False):
        return self.unary(name, "AveragePool", x, kernel_shape=pair(kernel), strides=pair(stride),
                          pads=four(pad), ceil_mode=False, count_include_pad=include_pad)

    def add(self, name, x, y):
        return self.node(name, "Add", [x, y], self.channels[x])

    def concat(self, name, inputs):
        return self.node(name, "Concat", inputs, sum(self.channels[x] for x in inputs), axis=1)

    def gemm(self, name, x, out):
        self.parameters += self.channels[x] * out + out
        return self.node(name, "Gemm", [x], out, out_features=out, bias=True)

    def flatten(self, name, x, pixels=1):
        """Of a value of so many pixels."""
        return self.node(name, "Flatten", [x], self.channels[x] * pixels, axis=1)

    def text(self, output, expected_parameters):
        if self.parameters != expected_parameters:
            raise ValueError(f"{self.name}: {self.parameters} parameters, "
                             f"the published count is {expected_parameters}")
        return document_text({"schema": "convsched.graph/1", "name": self.name,
                              "inputs": [{"name": self.input, "shape": self.shape, "dtype": "f32"}],
                              "nodes": self.nodes, "outputs": [output]})
