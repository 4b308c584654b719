#!/usr/bin/env python3
"""Writes tests/data/goldens: results that PyTorch computed in float64, to check convsched against.

    tools/make_goldens.py           write (needs torch, numpy, safetensors)
    tools/make_goldens.py --onnx    compare instead, node by node, with ONNX Runtime (needs onnxruntime, onnx)

<graph>/{graph.json, weights.safetensors, input.npy, output.npy}: small graphs of each model family.
models/<model>.npy: the output of each model in models/ for the parameters and the input generated
from seed 0 at batch 1 (docs/weights.md). Outputs are float64 results stored as float32.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

import golden_graphs
import graph_json
import weights
from record_errors import MODELS
from torch_graph import TorchGraph

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDENS_DIR = ROOT / "tests" / "data" / "goldens"
SEED, SMALL_BATCH = 0, 2


def compute(graph, batch):
    """(parameters, input, float64 output)."""
    state = weights.generate(graph, SEED)
    (name, shape), = graph_json.input_shapes(graph, batch).items()
    x = weights.generate_input(name, SEED, shape)
    y, = TorchGraph(graph, state, dtype=torch.float64)(torch.from_numpy(x).double())
    return state, x, y.numpy()


def write_small(make):
    text = make()
    folder = GOLDENS_DIR / make.__name__
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(text, encoding="utf-8")
    state, x, y = compute(graph_json.parse(json.loads(text)), SMALL_BATCH)
    save_file(state, folder / "weights.safetensors")
    np.save(folder / "input.npy", x)
    np.save(folder / "output.npy", y.astype(np.float32))


def write_model(model):
    folder = GOLDENS_DIR / "models"
    folder.mkdir(parents=True, exist_ok=True)
    _, _, y = compute(graph_json.load(ROOT / "models" / f"{model}.json"), 1)
    np.save(folder / f"{model}.npy", y.astype(np.float32))


# ---- A second opinion: ONNX Runtime ----

ONNX_OPSET, ONNX_IR, ONNX_TOLERANCE = 22, 10, 2e-6
# It takes LRN of odd sizes only; Resize, Slice and Transpose of split axes are several inputs or nodes of ONNX.
NOT_IN_ONNX_RUNTIME = (golden_graphs.lrn_even, golden_graphs.movements)


def onnx_node(node):
    """(ONNX node, names of its parameters' initializers, further initializers). The operators share
    names, most attributes and the order of parameters."""
    from onnx import helper, numpy_helper
    attrs = {key: int(value) if isinstance(value, bool) else value
             for key, value in node.attrs.items()}
    inputs, parameters = list(node.inputs), []
    if node.op in ("Conv", "ConvTranspose", "Gemm"):
        parameters = ["weight", "bias"] if attrs.pop("bias") else ["weight"]
        attrs.pop("out_channels", None)
        attrs.pop("out_features", None)
    if node.op == "Gemm":
        attrs["transB"] = 1
    if node.op == "BatchNormalization":
        parameters = ["weight", "bias", "running_mean", "running_var"]
    inputs += [f"{node.name}.{what}" for what in parameters]
    constants = []
    for key in {"Pad": ("pads", "value"), "Clip": ("min", "max")}.get(node.op, ()):
        value = np.asarray(attrs.pop(key), dtype=np.int64 if key == "pads" else np.float32)
        constants.append(numpy_helper.from_array(value, f"{node.name}.{key}"))
        inputs.append(f"{node.name}.{key}")
    return helper.make_node(node.op, inputs, [node.name], name=node.name, **attrs), constants


def onnx_outputs(graph, state, x, names):
    """The values of that name, computed in float32."""
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    nodes, initializers = [], [numpy_helper.from_array(value, name)
                               for name, value in state.items()]
    for node in graph.nodes:
        made, constants = onnx_node(node)
        nodes.append(made)
        initializers += constants
    f32, (source,) = onnx.TensorProto.FLOAT, graph.inputs
    body = helper.make_graph(
        nodes, graph.name, [helper.make_tensor_value_info(source, f32, x.shape)],
        [helper.make_tensor_value_info(name, f32, None) for name in names], initializers)
    model = helper.make_model(body, ir_version=ONNX_IR,
                              opset_imports=[helper.make_opsetid("", ONNX_OPSET)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(names, {source: x})


def compare_onnx(name, graph, batch):
    """Says what differs, node by node; true if nothing does."""
    state, x, _ = compute(graph, batch)
    module = TorchGraph(graph, state, dtype=torch.float64)
    values = module.bind([torch.from_numpy(x).double()])
    for node in module.order:
        module.run_node(node, values)
    names, good = [node.name for node in graph.nodes], True
    for value, found in zip(names, onnx_outputs(graph, state, x, names), strict=True):
        wanted = values[value].numpy()
        error = (np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-30)
                 if found.shape == wanted.shape else np.inf)
        if error > ONNX_TOLERANCE:
            good = False
            print(f"{name}: {value}: {found.shape} against {wanted.shape}, "
                  f"relative difference {error:.1e}")
    print(f"{name}: {'ok' if good else 'FAILED'}")
    return good


def check_onnx():
    results = [compare_onnx(make.__name__, graph_json.parse(json.loads(make())), SMALL_BATCH)
               for make in golden_graphs.GRAPHS if make not in NOT_IN_ONNX_RUNTIME]
    results += [compare_onnx(model, graph_json.load(ROOT / "models" / f"{model}.json"), 1)
                for model in MODELS]
    return 0 if all(results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx", action="store_true")
    if parser.parse_args().onnx:
        return check_onnx()
    for make in golden_graphs.GRAPHS:
        write_small(make)
    for model in MODELS:
        write_model(model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
