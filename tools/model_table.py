#!/usr/bin/env python3
"""The table of docs/models.md: what the networks of models/ consist of. Standard library only.

    tools/model_table.py            writes it
    tools/model_table.py --check    exit 1 if the page has another one
"""

import math
import pathlib
import sys

import graph_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- made by tools/model_table.py -->\n", "<!-- end -->\n"
PRODUCTS = ("Conv", "ConvTranspose", "Gemm")


def flops(node, shapes):
    """Two per multiply-add, as docs/graph-format.md counts."""
    given, made = shapes[node.inputs[0]], shapes[node.name]
    if node.op == "Gemm":
        return 2 * math.prod(made) * given[1]
    taps = math.prod(node.attrs["kernel_shape"])
    if node.op == "Conv":
        return 2 * math.prod(made) * given[1] // node.attrs["group"] * taps
    return 2 * math.prod(given) * made[1] // node.attrs["group"] * taps


def product_followers(graph):
    """Product's name -> the products that need its result, directly or not."""
    after = {}
    consumers = graph.consumers()
    for node in reversed(graph.nodes):
        after[node.name] = set()
        for reader in consumers.get(node.name, ()):
            after[node.name] |= after[reader.name]
            if reader.op in PRODUCTS:
                after[node.name].add(reader.name)
    return {node.name: after[node.name] for node in graph.nodes if node.op in PRODUCTS}


def width(followers):
    """The most products of which none needs another's result: by Dilworth and König their number less a
    largest matching of products with followers."""
    matched = {}

    def augment(product, seen):
        for follower in followers[product]:
            if follower in seen:
                continue
            seen.add(follower)
            if follower not in matched or augment(matched[follower], seen):
                matched[follower] = product
                return True
        return False

    return len(followers) - sum(augment(product, set()) for product in followers)


def row(path):
    graph = graph_json.load(path)
    shapes = graph_json.infer_shapes(graph)
    products = [node for node in graph.nodes if node.op in PRODUCTS]
    count = sum(math.prod(shape) for name, shape in graph_json.parameter_shapes(graph, shapes).items()
                if not name.endswith(("running_mean", "running_var")))
    work = sum(flops(node, shapes) for node in products) / 1e9
    return (f"| `{graph.name}` | {len(graph.nodes)} | {len(products)} | {width(product_followers(graph))} | "
            f"{count:,} | {work:.2f} |\n")


def table():
    sys.setrecursionlimit(10000)
    head = "| model | nodes | products | width | parameters | GFLOPs an image |\n|---|---|---|---|---|---|\n"
    return head + "".join(row(path) for path in sorted((ROOT / "models").glob("*.json"))
                          if path.name != "errors.json")


def main():
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    made = before + BEGIN + table() + END + rest.partition(END)[2]
    if sys.argv[1:] == ["--check"]:
        if made != text:
            print(f"{PAGE}: the table is not what tools/model_table.py makes", file=sys.stderr)
        return made != text
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
