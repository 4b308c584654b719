"""Makes an ONNX model from a convsched.graph/1 file and its safetensors parameters.

    bench/onnx_export.py MODEL.json WEIGHTS.safetensors OUT.onnx [BATCH]

The operators and attributes of the format are ONNX's own, so this is a translation node by node."""
import math
import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import weights_file

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import graph_json  # of tools/

OPSET = 17
CONV = ("kernel_shape", "strides", "pads", "dilations", "group")
POOL = ("kernel_shape", "strides", "pads", "ceil_mode")
ATTRIBUTES = {
    "Conv": CONV, "ConvTranspose": CONV + ("output_padding",), "MaxPool": POOL + ("dilations",),
    "AveragePool": POOL + ("count_include_pad",), "LRN": ("size", "alpha", "beta", "bias"),
    "Softmax": ("axis",), "Concat": ("axis",), "Flatten": ("axis",), "LeakyRelu": ("alpha",),
    "BatchNormalization": ("epsilon",), "Pad": ("mode",),
}


class Exporter:
    def __init__(self, graph, params):
        self.graph, self.params = graph, params
        self.nodes, self.initializers = [], []

    def constant(self, name, values):
        self.initializers.append(numpy_helper.from_array(numpy.asarray(values), name))
        return name

    def parameters(self, node, *names):
        full = [f"{node.name}.{name}" for name in names]
        return [self.constant(name, self.params[name]) for name in full if name in self.params]

    def more_inputs(self, node):
        """What ONNX takes as inputs where the format has parameters and attributes."""
        if node.op in ("Conv", "ConvTranspose", "Gemm"):
            return self.parameters(node, "weight", "bias")
        if node.op == "BatchNormalization":
            return self.parameters(node, "weight", "bias", "running_mean", "running_var")
        if node.op == "Clip":
            return ["" if math.isinf(node.attrs[end]) else
                    self.constant(f"{node.name}.{end}", numpy.float32(node.attrs[end]))
                    for end in ("min", "max")]
        if node.op == "Pad":
            return [self.constant(f"{node.name}.pads", numpy.array(node.attrs["pads"], numpy.int64)),
                    self.constant(f"{node.name}.value", numpy.float32(node.attrs["value"]))]
        return []

    def add(self, node):
        if node.op == "AveragePool" and node.attrs["dilations"] != [1, 1]:
            raise ValueError(f"{node.name}: AveragePool with dilations needs an opset after {OPSET}")
        attrs = {name: int(value) if isinstance(value, bool) else value
                 for name, value in node.attrs.items() if name in ATTRIBUTES.get(node.op, ())}
        if node.op == "Gemm":
            attrs = {"transB": 1}
        inputs = node.inputs + self.more_inputs(node)
        if node.op in ("Add", "Mul") and len(inputs) > 2:
            raise ValueError(f"{node.name}: {node.op} of {len(inputs)} inputs")
        self.nodes.append(helper.make_node(node.op, inputs, [node.name], name=node.name, **attrs))

    def export(self, batch):
        for node in self.graph.nodes:
            self.add(node)
        shapes = graph_json.infer_shapes(self.graph, batch)

        def described(names):
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shapes[n]) for n in names]

        graph = helper.make_graph(self.nodes, self.graph.name, described(self.graph.inputs),
                                  described(self.graph.outputs), self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        return model


def export(graph, params, batch=1):
    return Exporter(graph, params).export(batch)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    made = export(graph_json.load(sys.argv[1]), weights_file.read(sys.argv[2]),
                  int(sys.argv[4]) if len(sys.argv) == 5 else 1)
    onnx.save(made, sys.argv[3])
