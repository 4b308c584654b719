"""A model as every contender of a comparison has it: graph, generated weights, inputs, and float64 outputs."""
import os
import pathlib

import numpy

import records
import graph_json
import weights_file


def graph_path(model):
    """Of a name under models/, or of a path."""
    return model if model.endswith(".json") else str(records.ROOT / "models" / f"{model}.json")


def weights_of(graph, path, seed, work):
    """A file in the folder `work` with the weights that belong to the seed; written once."""
    weights = os.path.join(work, f"{pathlib.Path(path).stem}-{seed}.safetensors")
    if not os.path.exists(weights):
        graph.write_generated_weights(seed, weights)
    return weights


def described(path, weights):
    """(graph, parameters) as Python objects."""
    return graph_json.load(path), weights_file.read(weights)


def onnx_of(graph, weights):
    """The ONNX model of a graph with those weights, beside them; written once."""
    path = os.path.splitext(weights)[0] + ".onnx"
    if not os.path.exists(path):
        graph.export_onnx(path, weights_path=weights)
    return path


def others(graph, weights, threads):
    """Arguments of contenders that only some take (peer_list.Peer.others)."""
    return {"threads": threads, "onnx_file": lambda: onnx_of(graph, weights)}


def random_inputs(graph, batch, seed):
    """Standard normal, float32."""
    random = numpy.random.default_rng(seed)
    return [numpy.ascontiguousarray(random.standard_normal(shape, numpy.float32))
            for shape in graph.input_shapes(batch)]


def reference(graph, params, inputs, cpu):
    """Float64 outputs and who computed them; (None, None) where torch is not installed."""
    try:
        import torch_peers
    except ImportError:
        return None, None
    return torch_peers.reference(graph, params, inputs, "cpu" if cpu else "cuda"), "torch float64"
