"""Folds BatchNormalization into the convolutions before it. Needs numpy alone, so that every system
that is measured gets the same weights."""
import dataclasses

import numpy

import graph_json


def fold_batch_norm(graph, state):
    """(graph, state) with every BatchNormalization that is the only reader of a convolution folded
    into it, computed in float64."""
    producers, consumers = graph.producers(), graph.consumers()
    state = {name: numpy.asarray(value) for name, value in state.items()}
    nodes, renamed = {node.name: dataclasses.replace(node) for node in graph.nodes}, {}
    for norm in graph.nodes:
        source = producers.get(norm.inputs[0])
        if (norm.op != "BatchNormalization" or not source
                or source.op not in ("Conv", "ConvTranspose")
                or len(consumers[source.name]) > 1 or source.name in graph.outputs):
            continue
        fold_one(source, norm, state)
        nodes[source.name].attrs = {**source.attrs, "bias": True}
        if norm.name in graph.outputs:
            nodes[norm.name] = graph_json.Node(norm.name, "Identity", norm.inputs, {})
        else:
            renamed[norm.name] = source.name
            del nodes[norm.name]
    for node in nodes.values():
        node.inputs = [renamed.get(value, value) for value in node.inputs]
    ordered = [nodes[node.name] for node in graph.nodes if node.name in nodes]
    return dataclasses.replace(graph, nodes=ordered), state


def fold_one(source, norm, state):
    taken = {what: state.pop(f"{norm.name}.{what}").astype(numpy.float64)
             for what in ("weight", "bias", "running_mean", "running_var")}
    scale = taken["weight"] / numpy.sqrt(taken["running_var"] + norm.attrs["epsilon"])
    shift = taken["bias"] - taken["running_mean"] * scale
    weight = state[source.name + ".weight"]
    exact = weight.astype(numpy.float64)
    if source.op == "Conv":
        folded = exact * scale.reshape(-1, 1, 1, 1)
    else:  # [C, K/group, R, S]
        group = source.attrs["group"]
        outer, inner = weight.shape[0] // group, weight.shape[1]
        folded = (exact.reshape(group, outer, inner, *weight.shape[2:])
                  * scale.reshape(group, 1, inner, 1, 1)).reshape(weight.shape)
    bias = state.get(source.name + ".bias")
    bias = shift if bias is None else bias.astype(numpy.float64) * scale + shift
    state[source.name + ".weight"] = folded.astype(weight.dtype)
    state[source.name + ".bias"] = bias.astype(weight.dtype)
