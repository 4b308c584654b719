#!/usr/bin/env python3
"""Writes the corpus of fuzz_onnx, tests/fuzz/corpus/onnx: small models that together have every operator that is
imported, made byte by byte (tests/cli/onnx_bytes.py). Files of other names there, mended finds, stay."""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import onnx_bytes as onnx  # noqa: E402

X = onnx.value("x", ["N", 2, 4, 4])
INT64 = onnx.INT64


def model(nodes, initializers=(), inputs=(X,), opset=17, told=(), more=b""):
    """The last node makes the output, y."""
    return onnx.model(onnx.graph(nodes, list(inputs), [onnx.value("y", [])], list(initializers), list(told)), opset,
                      more=more)


def chain(operators, opset=17, **attributes):
    """Operators of one input, one behind the other."""
    names = ["x"] + [f"v{i}" for i in range(len(operators) - 1)] + ["y"]
    nodes = [onnx.node(op, [names[i]], [names[i + 1]], **attributes.get(op, {})) for i, op in enumerate(operators)]
    return model(nodes, opset=opset)


def floats(name, *dims):
    count = 1
    for extent in dims:
        count *= extent
    return onnx.tensor(name, dims, [(i % 5) / 4 for i in range(count)])


def integers(name, *values):
    return onnx.tensor(name, [len(values)], list(values), INT64)


def mark(reals):
    return b"".join(onnx.block(14, onnx.block(1, key) + onnx.block(2, value)) for key, value in
                    (("convsched.reals", reals), ("convsched", "convsched.graph/1")))


WINDOW = {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0], "strides": [2, 1]}
MODELS = {
    "conv": model([onnx.node("Conv", ["x", "w", "b"], ["c"], "conv", group=2, **WINDOW), onnx.node("Relu", ["c"], ["y"])],
                  [floats("w", 4, 1, 2, 2), floats("b", 4)], told=[onnx.value("c", ["N", 4, 3, 3])]),
    "conv_transpose": model([onnx.node("ConvTranspose", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[2, 2])],
                            [floats("w", 2, 3, 3, 3)]),
    "classifier": model([onnx.node("GlobalAveragePool", ["x"], ["p"]), onnx.node("Shape", ["p"], ["s"]),
                         onnx.node("Gather", ["s", "zero"], ["n"]), onnx.node("Unsqueeze", ["n", "first"], ["u"]),
                         onnx.node("Concat", ["u", "rest"], ["k"], axis=0), onnx.node("Reshape", ["p", "k"], ["f"]),
                         onnx.node("MatMul", ["f", "m"], ["h"]), onnx.node("Add", ["h", "v"], ["a"]),
                         onnx.node("Softmax", ["a"], ["y"], axis=1)],
                        [onnx.tensor("zero", [], [0], INT64), integers("first", 0), integers("rest", -1),
                         floats("m", 2, 3), floats("v", 3)]),
    "gemm": model([onnx.node("Gemm", ["v", "m", "b"], ["y"], alpha=0.5, beta=2.0, transB=1)],
                  [floats("m", 3, 5), floats("b", 1, 3)], [onnx.value("v", [2, 5])]),
    "products": model([onnx.node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]), onnx.node("MatMul", ["x", "t"], ["a"]),
                       onnx.node("MatMul", ["k", "a"], ["b"]), onnx.node("MatMul", ["b", "e"], ["c"]),
                       onnx.node("MatMul", ["c", "r"], ["y"])],
                      [floats("k", 3, 4), floats("e", 2, 4, 5), floats("r", 5)]),
    "batch_norm": model([onnx.node("BatchNormalization", ["x", "s", "s", "s", "s"], ["a"], epsilon=0.001),
                         onnx.node("InstanceNormalization", ["a", "s", "s"], ["y"])], [floats("s", 2)]),
    "functions": chain(["Abs", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg", "Selu", "Sigmoid",
                        "Softplus", "Sqrt", "Tanh", "Dropout", "Identity", "Flatten"]),
    "new_functions": chain(["Gelu", "Swish"], 24),
    "pools": chain(["MaxPool", "AveragePool", "LRN", "GlobalMaxPool"], MaxPool=dict(WINDOW, ceil_mode=1),
                   AveragePool=dict(WINDOW, count_include_pad=1), LRN={"size": 3, "alpha": 0.5}),
    "constants": model([onnx.node("Add", ["x", "k"], ["a"]), onnx.node("Mul", ["k", "a"], ["b"]),
                        onnx.node("Div", ["b", "one"], ["c"]), onnx.node("Sub", ["row", "c"], ["d"]),
                        onnx.node("Pow", ["d", "two"], ["e"]), onnx.node("PRelu", ["e", "k"], ["f"]),
                        onnx.node("Max", ["f", "row", "x"], ["g"]), onnx.node("Mean", ["g", "x"], ["y"])],
                       [floats("k", 2, 1, 1), onnx.tensor("one", [], [1.5]), onnx.tensor("two", [], [2.0]), floats("row", 4)]),
    "clip_pad": model([onnx.node("Clip", ["x", "", "hi"], ["a"]), onnx.node("Pad", ["a", "p", "hi"], ["b"]),
                       onnx.node("Cast", ["b"], ["c"], to=10), onnx.node("Transpose", ["c"], ["y"], perm=[0, 1, 2, 3])],
                      [onnx.tensor("hi", [], [6.0]), integers("p", 0, 0, 1, 0, 0, 0, 0, 1)]),
    "old": model([onnx.node("Clip", ["x"], ["a"], min=0.0, max=6.0), onnx.node("Pad", ["a"], ["b"], pads=[0, 0, 1, 0, 0, 0, 0, 1]),
                  onnx.node("ReduceMean", ["b"], ["c"], axes=[2, 3], keepdims=0), onnx.node("Unsqueeze", ["e"], ["f"], axes=[0]),
                  onnx.node("Squeeze", ["f"], ["g"], axes=[0]), onnx.node("Add", ["c", "g"], ["y"])], [floats("e", 2)], opset=7),
    "reductions": model([onnx.node("ReduceMax", ["x", "a"], ["b"]), onnx.node("ReduceSum", ["b", "a"], ["c"]),
                         onnx.node("ReduceMin", ["c"], ["y"], noop_with_empty_axes=1)], [integers("a", -1)], opset=18),
    "filled": model([onnx.node("ConstantOfShape", ["d"], ["w"], value=onnx.tensor("", [1], [0.5])),
                     onnx.node("Conv", ["x", "w"], ["y"])], [integers("d", 300, 2, 3, 3)]),
    "folded": model([onnx.node("Constant", [], ["a"], value_ints=[4, 2]), onnx.node("Slice", ["a", "z", "o"], ["b"]),
                     onnx.node("Mul", ["b", "o"], ["c"]), onnx.node("Floor", ["k"], ["e"]), onnx.node("Transpose", ["m"], ["t"]),
                     onnx.node("Size", ["x"], ["n"]), onnx.node("Sum", ["x", "e"], ["s"]), onnx.node("Flatten", ["s"], ["f"]),
                     onnx.node("MatMul", ["f", "t"], ["y"])],
                    [integers("z", 0), integers("o", 1), floats("k", 4), floats("m", 3, 32)]),
    "types": model([onnx.node("Add", ["x", "h"], ["a"]), onnx.node("Mul", ["a", "d"], ["b"]), onnx.node("Sub", ["b", "f"], ["y"])],
                   [onnx.tensor("h", [4], struct.pack("<4e", 1, 2, 3, 4), onnx.FLOAT16),
                    onnx.tensor("d", [], struct.pack("<d", 0.1), onnx.DOUBLE),
                    onnx.tensor("f", [4], None, onnx.FLOAT, onnx.block(4, onnx.floats([1, 2, 3, 4])))]),
    "external": model([onnx.node("Add", ["x", "e"], ["y"])],
                      [onnx.tensor("e", [4], None, more=onnx.external("w.bin", offset=4, length=16))]),
    "marked": model([onnx.node("Mul", ["k", "x"], ["a"], "a"), onnx.node("LeakyRelu", ["a"], ["b"], "b", alpha=0.1),
                     onnx.node("Max", ["k", "b"], ["c"], "c"), onnx.node("ReduceMean", ["c", "axes"], ["y"], "y")],
                    [floats("k", 1), integers("axes", 2, 3)], opset=18, more=mark('{"b.alpha":0.1}')),
}


def main():
    folder = HERE / "corpus/onnx"
    folder.mkdir(exist_ok=True)
    for name, content in MODELS.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
