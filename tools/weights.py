#!/usr/bin/env python3
"""The seeded generator of docs/weights.md in NumPy: the same bits as cs_params_generate.

    tools/weights.py GRAPH.json SEED OUT.safetensors    writes the parameters (needs safetensors)
"""

import dataclasses
import math
import sys

import numpy as np

import graph_json

FNV_OFFSET, FNV_PRIME, MASK64 = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
RESIDUAL_SCALE, MAX_POOL_GAIN, GATE_LOSS = 0.25, 2.0, 4.0
RECTIFIERS = {"Relu", "LeakyRelu", "Clip", "PRelu", "Elu", "HardSwish", "Swish"}
OPERAND_RANGES = {"Div": (1.0, 0.1), "Pow": (2.0, 0.0), "PRelu": (0.25, 0.1)}
PASSING = {"BatchNormalization", "InstanceNormalization", "GlobalMaxPool", "Add", "MaxPool", "AveragePool", "GlobalAveragePool", "LRN",
           "Concat", "Pad", "Reshape", "Transpose", "Slice", "Resize", "Identity", "Dropout"}
SCALED = {"Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization"}


# ---- Random numbers ----


def stream_of(*names):
    """FNV-1a over the names, each with a terminating zero byte."""
    value = FNV_OFFSET
    for name in names:
        for byte in name.encode() + b"\0":
            value = ((value ^ byte) * FNV_PRIME) & MASK64
    return value


def philox(seed, stream, blocks):
    """Philox 4x32-10, counters 0 … blocks − 1: uint32 [blocks, 4]."""
    low = np.uint64(0xFFFFFFFF)
    counter = np.arange(blocks, dtype=np.uint64)
    x = [counter & low, counter >> np.uint64(32),
         np.full(blocks, stream & 0xFFFFFFFF, np.uint64), np.full(blocks, stream >> 32, np.uint64)]
    key = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [(b >> np.uint64(32)) ^ x[1] ^ np.uint64(key[0]), b & low,
             (a >> np.uint64(32)) ^ x[3] ^ np.uint64(key[1]), a & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(x, axis=1).astype(np.uint32)


def uniform(seed, stream, count):
    """float64 in [0, 1), 53 bits each."""
    words = philox(seed, stream, (count + 1) // 2).reshape(-1, 2)[:count].astype(np.uint64)
    high, low = words[:, 0] >> np.uint64(5), words[:, 1] >> np.uint64(6)
    return (high * np.uint64(1 << 26) + low).astype(np.float64) / float(1 << 53)


def normal(seed, stream, count):
    """float64, Box–Muller: cosine first, then sine."""
    pairs = uniform(seed, stream, 2 * ((count + 1) // 2)).reshape(-1, 2)
    radius, angle = np.sqrt(-2.0 * np.log(1.0 - pairs[:, 0])), 6.283185307179586476925 * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:count]


# ---- The rule ----


@dataclasses.dataclass
class Role:
    """What the surroundings of a node say about its weights."""
    rectified: bool = False  # a rectifier follows, perhaps behind linear operations and pools
    residual: bool = False  # its output is the branch of a residual Add
    pooled: bool = False  # its input is a MaxPool's output, perhaps behind LRN or BatchNormalization
    gated: bool = False  # or a gate's


def gates_itself(node, producers):
    """x times Sigmoid(x), or times HardSigmoid(x) of slope 1/6."""
    for i, other in ((0, 1), (1, 0)) if node.op == "Mul" and len(node.inputs) == 2 else ():
        gate = producers.get(node.inputs[i])
        if gate is not None and gate.inputs[0] == node.inputs[other] and (
                gate.op == "Sigmoid" or gate.op == "HardSigmoid" and abs(6 * gate.attrs["alpha"] - 1) < 1e-6
                and gate.attrs["beta"] == 0.5):
            return True
    return False


def is_gated(node, producers):
    gates = [producers[value].op for value in node.inputs if value in producers]
    return (node.op == "Mul" and len(node.inputs) == 2 and not gates_itself(node, producers)
            and ("Sigmoid" in gates or "HardSigmoid" in gates))


def source_of(node, producers):
    """The node whose output it reads, but for LRN and BatchNormalization; None for an input."""
    source = producers.get(node.inputs[0])
    while source is not None and source.op in ("LRN", "BatchNormalization"):
        source = producers.get(source.inputs[0])
    return source


def is_scaled(node):
    return node.op in SCALED or (node.op == "Mul" and len(node.inputs) == 1)


def roles_of(graph):
    producers, reaching = graph.producers(), set()
    roles = {}
    for node in graph.nodes:
        source = source_of(node, producers)
        roles[node.name] = Role(pooled=source is not None and source.op == "MaxPool",
                                gated=source is not None and is_gated(source, producers))
    for node in reversed(graph.nodes):
        roles[node.name].rectified = node.name in reaching
        if (node.op in RECTIFIERS or gates_itself(node, producers)
                or (node.op in PASSING and node.name in reaching)):
            reaching.update(node.inputs)
        if node.op == "Add" and len(node.inputs) == 2:
            branches = [value for value in node.inputs
                        if value in producers and is_scaled(producers[value])]
            if branches:
                roles[branches[0]].residual = True
    return roles


def fan_in(node, shape):
    if node.op == "Gemm":
        return shape[1]
    if node.op == "MatMul":
        return shape[-2 if node.attrs["operand_first"] else -1]
    fan = shape[1] // node.attrs["group"]
    for axis in range(2):
        taps = node.attrs["kernel_shape"][axis]
        if node.op == "ConvTranspose":
            taps = -(-taps // node.attrs["strides"][axis])
        fan *= min(taps, shape[2 + axis])
    return fan


def parameter_range(node, what, shape, role):
    """(center, half width) of the uniform distribution of one parameter."""
    scale = RESIDUAL_SCALE if role.residual else 1.0
    if what == "running_var":
        return 1.0, 0.5
    if what == "running_mean":
        return 0.0, math.sqrt(0.03)
    if what == "bias":
        return 0.0, scale * math.sqrt(0.03)
    if node.op in ("BatchNormalization", "InstanceNormalization"):
        return scale, scale * 0.1
    if node.op == "Mul":
        return scale, 0.1 * scale
    if node.op in graph_json.BINARY:
        return OPERAND_RANGES.get(node.op, (0.0, math.sqrt(0.03)))
    gain = ((2.0 if role.rectified else 1.0) / (MAX_POOL_GAIN if role.pooled else 1.0)
            * (GATE_LOSS if role.gated else 1.0))
    return 0.0, scale * math.sqrt(3.0 * gain / fan_in(node, shape))


def generate(graph, seed):
    """Parameter name -> float32 array, for the graph as written."""
    shapes = graph_json.infer_shapes(graph)
    roles, producers, result = roles_of(graph), graph.producers(), {}
    for name, shape in graph_json.parameter_shapes(graph, shapes).items():
        node_name, _, what = name.rpartition(".")
        node = producers[node_name]
        center, half_width = parameter_range(node, what, shapes[node.inputs[0]], roles[node_name])
        draws = uniform(seed, stream_of(name), math.prod(shape))
        values = center + half_width * (2.0 * draws - 1.0)
        result[name] = values.astype(np.float32).reshape(shape)
    return result


def generate_input(name, seed, shape):
    """float32, the input used where none is given."""
    draws = normal(seed, stream_of("input", name), math.prod(shape))
    return draws.astype(np.float32).reshape(shape)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    from safetensors.numpy import save_file
    save_file(generate(graph_json.load(sys.argv[1]), int(sys.argv[2])), sys.argv[3])


if __name__ == "__main__":
    main()
