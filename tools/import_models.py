#!/usr/bin/env python3
"""Writes the models of models/*.json that are imported: from torchvision and timm by way of ONNX.

    tools/import_models.py CONVSCHED            export, import and write every one
    tools/import_models.py CONVSCHED --check    exit 1 if a committed file differs from what would be written

A network is exported by torch.onnx (TorchScript, opset 17, BatchNormalization left as it is) and imported
by `convsched import`; the weights are left out. Nodes are called as the network's modules, so that its
parameters are those of the state_dict, name by name; what is no module of its own is called as the
module that computes it and the operator (`features.3.add`). Exit: 77 without torch, torchvision, timm, onnx.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import onnx
    import torch
    import torchvision
    import timm
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)

import graph_json
from graph_builder import document_text, write_or_compare

MODELS_DIR = pathlib.Path(__file__).resolve().parent.parent / "models"
OPSET = 17
# name: (the network, extent of its image, its published number of trainable parameters)
MODELS = {
    "mobilenet_v2": (lambda: torchvision.models.mobilenet_v2(weights=None), 224, 3_504_872),
    "efficientnet_b0": (lambda: torchvision.models.efficientnet_b0(weights=None), 224, 5_288_548),
    "resnext50_32x4d": (lambda: torchvision.models.resnext50_32x4d(weights=None), 224, 25_028_904),
    "inception_resnet_v2": (lambda: timm.create_model("inception_resnet_v2"), 299, 55_843_464),
}


def export(module, extent, path):
    """Random parameters: equal ones would be shared, and exported once."""
    torch.manual_seed(0)
    for tensor in module.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (torch.zeros(1, 3, extent, extent),), path, opset_version=OPSET, dynamo=False,
                          training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"],
                          dynamic_axes={"input": {0: "N"}})


# ---- Names ----


def scope_of(name):
    """The module's path in a node's name: `/layer1/layer1.0/conv1/Conv` is in layer1.0.conv1. A member of a
    list is exported behind the list, with the list's name in its own."""
    path = []
    for part in name.strip("/").split("/")[:-1]:
        if path and part.startswith(path[-1] + "."):
            path.pop()
        path.append(part)
    return ".".join(path)


def rename(nodes, leaves):
    """`leaves`: paths of modules that compute for themselves. The last node of one is called as it, every other node
    as its module and operator; a second one of a name gets _1, as where torch.onnx meets a module again."""
    last = {scope_of(node.name): node for node in nodes}
    used = {}
    for node in nodes:
        scope = scope_of(node.name)
        operator = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.op_type).lower()
        leaf = re.sub(r"_\d+$", "", scope) in leaves or scope in leaves
        name = scope if leaf and last[scope] is node else f"{scope}.{operator}".lstrip(".")
        count = used[name] = used.get(name, -1) + 1
        node.name = f"{name}_{count}" if count else name


def name_as_modules(module, path):
    """Constants lie among the nodes and make none of ours."""
    model = onnx.load(path)
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    rename(nodes, {name for name, inner in module.named_modules()
                   if not list(inner.children()) or list(inner.parameters(recurse=False))})
    output, = model.graph.output
    maker, = (node for node in nodes if output.name in node.output)
    maker.output[list(maker.output).index(output.name)] = output.name = maker.name
    onnx.save(model, path)


# ---- Import ----


def shortest(value):
    """Attributes are f32 in ONNX: the shortest decimal that rounds to the same, 0.001 for 0.0010000000474974513."""
    if isinstance(value, list):
        return [shortest(item) for item in value]
    if not isinstance(value, float):
        return value
    single = torch.tensor(value, dtype=torch.float32)
    return next(float(text) for text in (f"{value:.{digits}g}" for digits in range(1, 18))
                if torch.tensor(float(text), dtype=torch.float32) == single)


def compare_parameters(document, module):
    """What of the state_dict is not in the graph, or of another shape, is an error. The graph may have more:
    products with constants are imported as BatchNormalization."""
    ours = graph_json.parameter_shapes(graph_json.parse(document))
    for name, tensor in module.state_dict().items():
        if not name.endswith("num_batches_tracked") and list(ours.get(name, ())) != list(tensor.shape):
            raise ValueError(f"{document['name']}: {name} is {ours.get(name)} here, {list(tensor.shape)} there")


def imported(command, name):
    """The text of the model's file."""
    make, extent, published = MODELS[name]
    module = make().eval()
    count = sum(math.prod(parameter.shape) for parameter in module.parameters())
    if count != published:
        raise ValueError(f"{name}: {count} parameters, the published count is {published}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{name}.onnx"
        export(module, extent, str(path))
        name_as_modules(module, str(path))
        written = path.with_suffix(".json")
        subprocess.run([command, "import", str(path), "-o", str(written)], check=True)
        document = json.loads(written.read_text(encoding="utf-8"))
    del document["weights"]
    for node in document["nodes"]:
        if "attrs" in node:
            node["attrs"] = {key: shortest(value) for key, value in node["attrs"].items()}
    compare_parameters(document, module)
    return document_text(document)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", help="the convsched command")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="NAME")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, timm {timm.__version__}")
    files = ((MODELS_DIR / f"{name}.json", imported(options.command, name)) for name in options.models)
    return write_or_compare(files, options.check, "tools/import_models.py")


if __name__ == "__main__":
    sys.exit(main())
