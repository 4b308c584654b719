#!/usr/bin/env python3
"""Compares tools/jax_graph.py with tools/torch_graph.py in float64, on the CPU, in both layouts: the
relative L2 error of all outputs together, of every model (or of the graphs given) at batch 1.

    tools/check_jax.py [GRAPH.json…]

Exit: 0 ok, 1 a graph differs, 77 no JAX or no torch.
"""
import os
import pathlib
import sys

import numpy

import graph_json
import weights

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = {"f32": 1e-4, "f16": 2e-2}  # as bench/records.py's


def rel_l2(found, wanted):
    norm = lambda arrays: sum(float(numpy.sum(a * a)) for a in arrays) ** 0.5
    return norm([f.astype(numpy.float64) - w for f, w in zip(found, wanted)]) / norm(wanted)


def check(graph):
    """Prints the errors of a graph; whether they are small."""
    import jax
    import torch
    from jax_graph import LAYOUTS, JaxGraph
    from torch_graph import TorchGraph

    state = weights.generate(graph, 0)
    random = numpy.random.default_rng(0)
    inputs = [random.standard_normal(shape, numpy.float32) for shape in graph_json.input_shapes(graph).values()]
    wanted = [y.numpy() for y in TorchGraph(graph, state, dtype=torch.float64)(
        *[torch.from_numpy(x).double() for x in inputs])]
    good = True
    for dtype in LIMITS:
        for layout in LAYOUTS:
            with jax.default_matmul_precision("highest"):
                net = JaxGraph(graph, state, layout, dtype)
                error = rel_l2(net.taken(jax.jit(net)(net.params, net.given(inputs))), wanted)
            print(f"{graph.name} {dtype} {layout} {error:.1e}", flush=True)
            good = good and error <= LIMITS[dtype]
    return good


def main():
    try:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax  # noqa: F401
        import torch
    except ImportError as error:
        print(error)
        return 77
    torch.set_num_threads(2)
    paths = [pathlib.Path(p) for p in sys.argv[1:]] or sorted(
        p for p in (ROOT / "models").glob("*.json") if p.name != "errors.json")
    return 0 if all([check(graph_json.load(path)) for path in paths]) else 1


if __name__ == "__main__":
    sys.exit(main())
