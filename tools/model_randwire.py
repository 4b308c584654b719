"""RandWire, for tools/make_models.py.

Source: Xie et al., "Exploring randomly wired neural networks for image recognition", 2019: three stages, each
a random graph of Watts and Strogatz, made directed by its nodes' numbers. A node adds its inputs, each times a
number (the sigmoid of a learned one; a single input is taken as it is), then Relu, a separable convolution of
3×3, BatchNormalization. Nodes without inputs read the stage's input, with stride 2; the mean of the nodes that
nothing reads is the stage's output.
"""

import random

from graph_builder import Builder


def watts_strogatz(nodes, neighbours, probability, draw):
    """Edges (from, to), from < to, of WS(neighbours, probability): a ring in which every node is joined to
    its `neighbours` nearest ones, and of whose edges each end further on is moved to another node with
    `probability`. `draw` gives numbers in [0, 1)."""
    joined = {(i, (i + step) % nodes) for step in range(1, neighbours // 2 + 1) for i in range(nodes)}
    edges = {frozenset(edge) for edge in joined}
    for step in range(1, neighbours // 2 + 1):
        for i in range(nodes):
            if draw() >= probability:
                continue
            free = [j for j in range(nodes) if j != i and frozenset((i, j)) not in edges]
            edges.remove(frozenset((i, (i + step) % nodes)))
            edges.add(frozenset((i, free[int(draw() * len(free))])))
    return sorted(tuple(sorted(edge)) for edge in edges)


def scaled(b, name, x):
    """Times one number, which is a parameter."""
    b.parameters += 1
    return b.unary(name, "Mul", x, operand=[1])


def separable(b, p, x, out, stride):
    x, channels = b.relu(p + "relu", x), b.channels[x]
    x = b.conv(p + "depthwise", x, channels, 3, stride, 1, bias=False, group=channels)
    return b.norm(p + "norm", b.conv(p + "pointwise", x, out, 1, bias=False))


def total(b, p, values):
    """The sum, as a chain of additions."""
    result = values[0]
    for index, value in enumerate(values[1:], start=1):
        result = b.add(f"{p}add{index}", result, value)
    return result


def stage(b, name, x, out, nodes, edges):
    made = []
    for i in range(nodes):
        p = f"{name}.node{i}."
        sources = [source for source, sink in edges if sink == i]
        if len(sources) > 1:
            y = total(b, p, [scaled(b, f"{p}edge{source}", made[source]) for source in sources])
        else:
            y = made[sources[0]] if sources else x
        made.append(separable(b, p, y, out, 1 if sources else 2))
    read = {source for source, _ in edges}
    ends = [value for i, value in enumerate(made) if i not in read]
    if len(ends) == 1:
        return ends[0]
    b.parameters -= 1  # one over their number is a constant
    return scaled(b, name + ".mean", total(b, name + ".", ends))


# The small regime: 32 nodes a stage, 78 channels; WS(4, 0.75), the best of the paper, which tells 5.6 million
# parameters and 583 million multiply-adds (both depend on the random graphs).
def randwire_ws_small():
    b = Builder("randwire_ws_small", "input", ["N", 3, 224, 224])
    width, nodes = 78, 32
    draw = random.Random(0).random  # the same numbers in every version of Python
    x = b.norm("conv1.norm", b.conv("conv1.conv", "input", width // 2, 3, 2, 1, bias=False))
    x = b.norm("conv2.norm", b.conv("conv2.conv", b.relu("conv2.relu", x), width, 3, 2, 1, bias=False))
    for number, out in ((3, width), (4, 2 * width), (5, 4 * width)):
        x = stage(b, f"conv{number}", x, out, nodes, watts_strogatz(nodes, 4, 0.75, draw))
    x = b.norm("head.norm", b.conv("head.conv", b.relu("head.relu", x), 1280, 1, bias=False))
    x = b.flatten("flatten", b.unary("avgpool", "GlobalAveragePool", x))
    return b.text(b.gemm("fc", x, 1000), 5_651_918)
