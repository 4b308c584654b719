"""A convsched.graph/1 model with its safetensors parameters, as plain numpy; BatchNormalization
folded into the convolution before it, as every contender gets it."""
import json
import struct

import numpy

DTYPES = {"F32": numpy.float32, "F16": numpy.float16, "F64": numpy.float64}


def read_safetensors(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"]).copy()
    return tensors


class Model:
    """`nodes` in the file's order, each {"name", "op", "inputs", "attrs"}; `params` by name."""

    def __init__(self, graph_path, weights_path):
        with open(graph_path, encoding="utf-8") as file:
            graph = json.load(file)
        self.name = graph["name"]
        self.inputs = graph["inputs"]
        self.outputs = list(graph["outputs"])
        self.nodes = [dict(node, attrs=dict(node.get("attrs", {}))) for node in graph["nodes"]]
        self.params = read_safetensors(weights_path)
        self._drop_identities()
        self._fold_batch_normalization()

    def input_shapes(self, batch):
        return [[batch if d == "N" else d for d in i["shape"]] for i in self.inputs]

    def consumers(self):
        """Names of the nodes that read a value; "" stands for a graph output."""
        readers = {}
        for node in self.nodes:
            for name in node["inputs"]:
                readers.setdefault(name, []).append(node["name"])
        for name in self.outputs:
            readers.setdefault(name, []).append("")
        return readers

    def _replace(self, old, new):
        for node in self.nodes:
            node["inputs"] = [new if name == old else name for name in node["inputs"]]
        self.outputs = [new if name == old else name for name in self.outputs]

    def _drop_identities(self):
        for node in [n for n in self.nodes if n["op"] in ("Identity", "Dropout")]:
            self.nodes.remove(node)
            self._replace(node["name"], node["inputs"][0])

    def _fold_batch_normalization(self):
        by_name = {node["name"]: node for node in self.nodes}
        readers = self.consumers()
        for node in [n for n in self.nodes if n["op"] == "BatchNormalization"]:
            before = by_name.get(node["inputs"][0])
            if (before is None or before["op"] not in ("Conv", "ConvTranspose") or
                    readers[before["name"]] != [node["name"]]):
                continue
            scale, shift = self.batch_normalization(node)
            weight = self.params[before["name"] + ".weight"].astype(numpy.float64)
            bias = self.params.get(before["name"] + ".bias", numpy.zeros_like(shift)).astype(numpy.float64)
            if before["op"] == "Conv":
                weight *= scale[:, None, None, None]
            else:  # [C, K/group, R, S]: output channels are (group, second axis)
                group = before["attrs"].get("group", 1)
                shape = weight.shape
                weight = (weight.reshape(group, shape[0] // group, *shape[1:]) *
                          scale.reshape(group, 1, shape[1], 1, 1)).reshape(shape)
            self.params[before["name"] + ".weight"] = weight.astype(numpy.float32)
            self.params[before["name"] + ".bias"] = (bias * scale + shift).astype(numpy.float32)
            before["attrs"]["bias"] = True
            self.nodes.remove(node)
            self._replace(node["name"], before["name"])
            readers[before["name"]] = readers.pop(node["name"])

    def batch_normalization(self, node):
        """Scale and shift of a BatchNormalization node, float64."""
        weight, bias, mean, var = (self.params[f"{node['name']}.{p}"].astype(numpy.float64)
                                   for p in ("weight", "bias", "running_mean", "running_var"))
        scale = weight / numpy.sqrt(var + node["attrs"].get("epsilon", 1e-5))
        return scale, bias - mean * scale
