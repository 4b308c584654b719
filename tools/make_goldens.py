#!/usr/bin/env python3
"""Writes tests/data/goldens: results that PyTorch computed in float64, to check convsched against.

    tools/make_goldens.py                        write (needs torch, numpy, safetensors)
    tools/make_goldens.py --onnx LIBCONVSCHED    compare instead, node by node, with ONNX Runtime, to which the
                                                 library exports the graphs (needs onnxruntime, onnx)

<graph>/{graph.json, weights.safetensors, input.npy, output.npy}: small graphs of each model family.
models/<model>.npy: the output of models in models/ (but the three that are slowest in the C reference) for the
parameters and the input generated from seed 0 at batch 1 (docs/weights.md). Outputs are float64 results stored as float32.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import save_file

import golden_graphs
import graph_json
import weights
from record_errors import MODELS
from torch_graph import TorchGraph

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "bench"))
import convsched  # noqa: E402  of bench/

SLOW = ("resnext50_32x4d", "inception_resnet_v2", "vgg16")
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

ONNX_TOLERANCE = 2e-6
NOT_IN_ONNX_RUNTIME = (golden_graphs.lrn_even,)  # it takes LRN of odd sizes only


def onnx_outputs(library, path, x, names):
    """The values of that name, computed in float32 from what convsched exports of a graph's file."""
    import onnx
    import onnxruntime
    with tempfile.TemporaryDirectory() as folder, library.load_graph(path) as graph:
        file = f"{folder}/model.onnx"
        graph.export_onnx(file, seed=SEED)
        model = onnx.load(file)
    known = {info.name: info for info in (*model.graph.value_info, *model.graph.output)}
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(names, {session.get_inputs()[0].name: x})


def compare_onnx(library, path, batch):
    """Says what differs, node by node; true if nothing does."""
    name, graph = path.stem, graph_json.load(path)
    state, x, _ = compute(graph, batch)
    module = TorchGraph(graph, state, dtype=torch.float64)
    values = module.bind([torch.from_numpy(x).double()])
    for node in module.order:
        module.run_node(node, values)
    names, good = [node.name for node in graph.nodes], True
    for value, found in zip(names, onnx_outputs(library, path, x, names), strict=True):
        wanted = values[value].numpy()
        error = (np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-30)
                 if found.shape == wanted.shape else np.inf)
        if error > ONNX_TOLERANCE:
            good = False
            print(f"{name}: {value}: {found.shape} against {wanted.shape}, "
                  f"relative difference {error:.1e}")
    print(f"{name}: {'ok' if good else 'FAILED'}")
    return good


def check_onnx(library):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for make in golden_graphs.GRAPHS:
            if make in NOT_IN_ONNX_RUNTIME:
                continue
            path = pathlib.Path(folder) / f"{make.__name__}.json"
            path.write_text(make(), encoding="utf-8")
            results.append(compare_onnx(library, path, SMALL_BATCH))
    results += [compare_onnx(library, ROOT / "models" / f"{model}.json", 1) for model in MODELS]
    return 0 if all(results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx", metavar="LIBCONVSCHED")
    library = parser.parse_args().onnx
    if library:
        return check_onnx(convsched.Library(library))
    for make in golden_graphs.GRAPHS:
        write_small(make)
    for model in MODELS:
        if model not in SLOW:
            write_model(model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
