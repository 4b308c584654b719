"""Makes an ONNX model from a convsched.graph/1 file and its safetensors parameters.

    bench/onnx_export.py MODEL.json WEIGHTS.safetensors OUT.onnx [BATCH]

The operators and attributes of the format are ONNX's own, so that this is a translation node by
node; BatchNormalization is folded as for every other contender."""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from model import Model

OPSET = 17
CONV = ("kernel_shape", "strides", "pads", "dilations", "group")
POOL = ("kernel_shape", "strides", "pads", "ceil_mode")
ATTRIBUTES = {
    "Conv": CONV, "ConvTranspose": CONV + ("output_padding",), "MaxPool": POOL + ("dilations",),
    "AveragePool": POOL + ("count_include_pad",), "LRN": ("size", "alpha", "beta", "bias"),
    "Softmax": ("axis",), "Concat": ("axis",), "Flatten": ("axis",), "LeakyRelu": ("alpha",),
    "BatchNormalization": ("epsilon",),
}


class Exporter:
    def __init__(self, model):
        self.model = model
        self.nodes, self.initializers = [], []

    def constant(self, name, values):
        self.initializers.append(numpy_helper.from_array(numpy.ascontiguousarray(values), name))
        return name

    def parameter(self, node, what):
        name = f"{node['name']}.{what}"
        return self.constant(name, self.model.params[name])

    def add(self, node):
        op, name, attrs = node["op"], node["name"], node["attrs"]
        inputs = list(node["inputs"])
        kept = {key: int(attrs[key]) if isinstance(attrs[key], bool) else attrs[key]
                for key in ATTRIBUTES.get(op, ()) if key in attrs}
        if op == "AveragePool" and any(d != 1 for d in attrs.get("dilations", [])):
            raise ValueError(f"{name}: AveragePool with dilations needs a newer opset than {OPSET}")
        if op in ("Conv", "ConvTranspose", "Gemm"):
            inputs.append(self.parameter(node, "weight"))
            if f"{name}.bias" in self.model.params:
                inputs.append(self.parameter(node, "bias"))
        if op == "Gemm":
            kept = {"transB": 1}
        elif op == "BatchNormalization":
            inputs += [self.parameter(node, p) for p in ("weight", "bias", "running_mean", "running_var")]
        elif op == "Clip":
            inputs += [self.constant(f"{name}.{end}", numpy.float32(attrs[end])) for end in ("min", "max")]
        elif op == "Pad":
            inputs += [self.constant(f"{name}.pads", numpy.array(attrs["pads"], numpy.int64)),
                       self.constant(f"{name}.value", numpy.float32(attrs.get("value", 0)))]
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **kept))

    def export(self, batch):
        for node in self.model.nodes:
            self.add(node)
        inputs = [helper.make_tensor_value_info(i["name"], TensorProto.FLOAT, shape)
                  for i, shape in zip(self.model.inputs, self.model.input_shapes(batch))]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                   for name in self.model.outputs]
        graph = helper.make_graph(self.nodes, self.model.name, inputs, outputs, self.initializers)
        result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        result.ir_version = 8
        onnx.checker.check_model(onnx.shape_inference.infer_shapes(result))
        return result


def export(model, batch=1):
    return Exporter(model).export(batch)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    made = export(Model(sys.argv[1], sys.argv[2]), int(sys.argv[4]) if len(sys.argv) == 5 else 1)
    onnx.save(made, sys.argv[3])
