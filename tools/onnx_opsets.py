#!/usr/bin/env python3
"""One network written in every opset that the importer takes (and the onnx package knows), run by
libconvsched on the CPU: attributes that became inputs, defaults that changed. All mean the same, which is
what ONNX Runtime computes of one of them.

    tools/onnx_opsets.py LIBCONVSCHED

Exit: 0 equal in every opset, 1 not, 77 the packages onnx, onnxruntime and numpy are not here.
"""
import pathlib
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"not here: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import convsched  # noqa: E402

OLDEST, NEWEST, EVALUATED = 7, 28, 17
BATCH = 3
node = helper.make_node


def network(opset):
    rng = np.random.default_rng(1)
    tensors = []

    def normal(name, *shape):
        tensors.append(numpy_helper.from_array((0.3 * rng.standard_normal(shape)).astype(np.float32), name))
        return name

    def positive(name, *shape):
        tensors.append(numpy_helper.from_array((0.5 + rng.random(shape)).astype(np.float32), name))
        return name

    def integers(name, *values):
        tensors.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    nodes = [
        node("Conv", ["x", normal("w1", 8, 3, 3, 3), normal("b1", 8)], ["c1"], strides=[2, 2],
             auto_pad="SAME_UPPER", kernel_shape=[3, 3]),
        node("BatchNormalization", ["c1", positive("s", 8), normal("t", 8), normal("m", 8), positive("v", 8)],
             ["n1"], epsilon=1e-3)]
    if opset < 11:
        nodes.append(node("Clip", ["n1"], ["r1"], min=0.0, max=6.0))
    else:
        tensors.append(numpy_helper.from_array(np.float32(0), "low"))
        tensors.append(numpy_helper.from_array(np.float32(6), "high"))
        nodes.append(node("Clip", ["n1", "low", "high"], ["r1"]))
    pads = [0, 0, 1, 0, 0, 0, 0, 1]
    if opset < 11:
        nodes.append(node("Pad", ["r1"], ["p1"], pads=pads))
    else:
        nodes.append(node("Pad", ["r1", integers("pads", *pads)], ["p1"]))
    nodes += [
        node("Conv", ["r1", normal("w2", 8, 1, 3, 3)], ["c2"], group=8, pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r1"], ["a2"]),
        node("Conv", ["a2", normal("w3", 6, 8, 1, 1)], ["c3"]),
        node("Add", ["c3", normal("b3", 1, 6, 1, 1)], ["a3"]),
        node("Sigmoid", ["a3"], ["g3"]),
        node("Concat", ["a2", "g3"], ["k3"], axis=1),
        node("MaxPool", ["k3"], ["q3"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("LRN", ["q3"], ["l3"], size=5),
        node("ConvTranspose", ["l3", normal("w4", 14, 4, 2, 2)], ["c4"], strides=[2, 2])]
    if opset < 18:
        nodes.append(node("ReduceMean", ["c4"], ["m4"], axes=[2, 3], keepdims=0))
    else:
        nodes.append(node("ReduceMean", ["c4", integers("axes", 2, 3)], ["m4"], keepdims=0))
    zero = numpy_helper.from_array(np.array(0, np.int64))
    nodes += [node("Shape", ["m4"], ["shape"]), node("Constant", [], ["zero"], value=zero),
              node("Gather", ["shape", "zero"], ["n"], axis=0)]
    if opset < 13:
        nodes.append(node("Unsqueeze", ["n"], ["n_list"], axes=[0]))
    else:
        nodes.append(node("Unsqueeze", ["n", integers("first", 0)], ["n_list"]))
    nodes += [node("Concat", ["n_list", integers("rest", -1)], ["target"], axis=0),
              node("Reshape", ["m4", "target"], ["f4"]),
              node("MatMul", ["f4", normal("w5", 4, 10)], ["h5"]), node("Add", ["h5", normal("b5", 10)], ["a5"]),
              node("Mul", ["a5", normal("k5", 1, 10)], ["s5"]), node("Softmax", ["s5"], ["y"], axis=1)]
    padded = helper.make_tensor_value_info("p1", onnx.TensorProto.FLOAT, ["batch", 8, 10, 10])
    graph = helper.make_graph(
        nodes, "opsets", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 3, 17, 18])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 10]), padded], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = convsched.Library(sys.argv[1])
    x = np.random.default_rng(2).standard_normal((BATCH, 3, 17, 18)).astype(np.float32)
    session = onnxruntime.InferenceSession(network(EVALUATED).SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x})
    wrong = 0
    with library.open_device("cpu") as device, tempfile.TemporaryDirectory() as folder:
        for opset in range(OLDEST, min(NEWEST, onnx.defs.onnx_opset_version()) + 1):
            path = f"{folder}/model.onnx"
            onnx.save(network(opset), path)
            found = [np.zeros(w.shape, np.float32) for w in wanted]
            with library.load_graph(path) as graph, \
                    convsched.Session(device, graph, batch=BATCH, cache_dir=folder) as session:
                session.run([x], found)
            error = max(float(np.abs(f - w).max()) for f, w in zip(found, wanted))
            print(f"opset {opset}: largest difference {error:.1e}")
            wrong += not error < 1e-5
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
