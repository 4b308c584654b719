"""Importing ONNX: what converts, what is refused and how, bad files. Models are made byte by byte."""
import json
import os
import random
import struct

import harness
import onnx_bytes as onnx
from harness import BAD_INPUT, FAILURE, OK, USAGE, CommandTest

WEIGHT = [((i * 7) % 11 - 5) / 8 for i in range(2 * 3 * 3 * 3)]
MATRIX = [((i * 5) % 13 - 6) / 8 for i in range(2 * 4)]


def small(opset=17, batch="N", **parts):
    """Conv, Relu, GlobalAveragePool, Flatten by Shape arithmetic, Gemm without transB."""
    body = {
        "nodes": [
            onnx.node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
            onnx.node("Relu", ["c"], ["r"]),
            onnx.node("GlobalAveragePool", ["r"], ["p"], "pool"),
            onnx.node("Shape", ["p"], ["s"]),
            onnx.node("Constant", [], ["zero"], value=onnx.tensor("", [], [0], onnx.INT64)),
            onnx.node("Gather", ["s", "zero"], ["n"]),
            onnx.node("Constant", [], ["axis"], value=onnx.tensor("", [1], [0], onnx.INT64)),
            onnx.node("Unsqueeze", ["n", "axis"], ["n1"]),
            onnx.node("Constant", [], ["rest"], value=onnx.tensor("", [1], [-1], onnx.INT64)),
            onnx.node("Concat", ["n1", "rest"], ["shape"], axis=0),
            onnx.node("Reshape", ["p", "shape"], ["f"], "flat"),
            onnx.node("Gemm", ["f", "m", "v"], ["y"], "fc", alpha=0.5),
        ],
        "inputs": [onnx.value("x", [batch, 3, 5, 5])],
        "outputs": [onnx.value("y", [batch, 4])],
        "initializers": [onnx.tensor("w", [2, 3, 3, 3], WEIGHT), onnx.tensor("b", [2], [0.5, -0.25]),
                         onnx.tensor("m", [2, 4], MATRIX), onnx.tensor("v", [4], [1.0, 2.0, 3.0, 4.0])],
    }
    body.update(parts)
    return onnx.model(onnx.graph(**body), opset)


def one(op, shape, opset=17, inputs=("x",), initializers=(), batch="N", **attributes):
    """A model of one node; its output is called y."""
    return onnx.model(onnx.graph([onnx.node(op, list(inputs), ["y"], "it", **attributes)],
                                 [onnx.value("x", [batch, *shape])], [onnx.value("y", [])],
                                 list(initializers)), opset)


class ImportTest(CommandTest):
    cold = True

    def convert(self, content, name="m.onnx"):
        """(graph, parameters) of a model that imports."""
        self.accepted(self.execute("import", self.file(name, content), "-o", "out.json"))
        return (json.loads((self.folder / "out.json").read_text()),
                harness.read_safetensors(self.folder / "out.safetensors"))

    def bad(self, content, *fragments):
        """Refused with every fragment in the message, which may have several lines; nothing written."""
        code, out, err = self.execute("import", self.file("bad.onnx", content), "-o", "bad.json")
        self.assertEqual((code, out), (BAD_INPUT, ""), err)
        for fragment in fragments:
            self.assertIn(fragment, err)
        self.assertFalse((self.folder / "bad.json").exists())
        return err

    def ops(self, content):
        return [(n["name"], n["op"], n.get("attrs", {})) for n in self.convert(content)[0]["nodes"]]


class Conversion(ImportTest):
    def test_graph_and_weights(self):
        graph, params = self.convert(small())
        self.assertEqual(graph["name"], "m")
        self.assertEqual(graph["weights"], "out.safetensors")
        self.assertEqual(graph["inputs"][0]["shape"], ["N", 3, 5, 5])
        self.assertEqual([(n["name"], n["op"]) for n in graph["nodes"]],
                         [("conv", "Conv"), ("r", "Relu"), ("pool", "GlobalAveragePool"),
                          ("flat", "Flatten"), ("y", "Gemm")])
        self.assertEqual(graph["outputs"], ["y"])
        self.assertEqual(params["conv.weight"], ([2, 3, 3, 3], tuple(WEIGHT)))
        self.assertEqual(params["conv.bias"], ([2], (0.5, -0.25)))
        transposed = tuple(0.5 * MATRIX[row * 4 + column] for column in range(4) for row in range(2))
        self.assertEqual(params["y.weight"], ([4, 2], transposed))
        self.assertEqual(params["y.bias"], ([4], (1.0, 2.0, 3.0, 4.0)))

    def test_runs_in_memory_and_converted(self):
        x = [((i * 3) % 17 - 8) / 4 for i in range(2 * 75)]
        self.file("x.npy", harness.npy((2, 3, 5, 5), x))
        model = self.file("m.onnx", small())
        self.convert(small())
        outputs = []
        for path, out in ((model, "a.npy"), ("out.json", "b.npy")):
            self.accepted(self.execute("run", path, "--device", "cpu", "--policy", "sequential", "--batch", 2,
                                       "--input", "x.npy", "--output", out, "--verify", "full"))
            outputs.append(harness.read_npy(self.folder / out))
        self.assertEqual(outputs[0], outputs[1])
        shape, found = outputs[0]
        self.assertEqual(shape, (2, 4))
        for n in range(2):
            pooled = []
            for k in range(2):
                total = 0.0
                for i in range(5):
                    for j in range(5):
                        sum_ = (0.5, -0.25)[k]
                        for c in range(3):
                            for r in range(3):
                                for s in range(3):
                                    row, column = i + r - 1, j + s - 1
                                    if 0 <= row < 5 and 0 <= column < 5:
                                        sum_ += (WEIGHT[((k * 3 + c) * 3 + r) * 3 + s] *
                                                 x[((n * 3 + c) * 5 + row) * 5 + column])
                        total += max(sum_, 0.0)
                pooled.append(total / 25)
            for k in range(4):
                wanted = 0.5 * sum(pooled[c] * MATRIX[c * 4 + k] for c in range(2)) + k + 1
                self.assertAlmostEqual(found[n * 4 + k], wanted, places=4)

    def test_other_commands_take_onnx(self):
        model = self.file("m.onnx", small())
        out, _ = self.accepted(self.execute("inspect", model))
        self.assertIn("Conv", out)

    def test_types_and_places_of_elements(self):
        halves = [0.5, -1.5]
        for name, tensor in {
                "float_data packed": onnx.tensor("b", [2], more=onnx.block(4, onnx.floats(halves))),
                "float_data one by one": onnx.tensor("b", [2], more=b"".join(onnx.real(4, v) for v in halves)),
                "float16 raw": onnx.tensor("b", [2], struct.pack("<2e", *halves), onnx.FLOAT16),
                "float16 in int32_data": onnx.tensor("b", [2], None, onnx.FLOAT16, onnx.block(
                    5, b"".join(onnx.varint(struct.unpack("<H", struct.pack("<e", v))[0]) for v in halves))),
                "bfloat16 raw": onnx.tensor("b", [2], b"".join(struct.pack("<f", v)[2:] for v in halves),
                                            onnx.BFLOAT16),
                "double raw": onnx.tensor("b", [2], struct.pack("<2d", *halves), onnx.DOUBLE),
                "double_data": onnx.tensor("b", [2], None, onnx.DOUBLE,
                                           onnx.block(10, struct.pack("<2d", *halves))),
        }.items():
            with self.subTest(name):
                _, params = self.convert(small(initializers=[
                    onnx.tensor("w", [2, 3, 3, 3], WEIGHT), tensor, onnx.tensor("m", [2, 4], MATRIX),
                    onnx.tensor("v", [4], [1.0, 2.0, 3.0, 4.0])]))
                self.assertEqual(params["conv.bias"], ([2], tuple(halves)))

    def test_names(self):
        nodes = [onnx.node("Relu", ["x"], ["a"], "same"), onnx.node("Relu", ["a"], ["b"], "same"),
                 onnx.node("Relu", ["b"], ["c"], "x"), onnx.node("Relu", ["c"], ["d"], "n" * 300),
                 onnx.node("Relu", ["d"], ["e"]), onnx.node("Relu", ["e"], ["y"], "last")]
        graph, _ = self.convert(onnx.model(onnx.graph(nodes, [onnx.value("x", ["N", 4])],
                                                      [onnx.value("y", [])])))
        self.assertEqual([n["name"] for n in graph["nodes"]],
                         ["same", "same_2", "x_2", "n" * 240, "e", "y"])

    def test_initializers_among_the_inputs(self):
        """As files before IR version 4 have them."""
        graph, _ = self.convert(small(inputs=[onnx.value("x", ["N", 3, 5, 5]), onnx.value("w", [2, 3, 3, 3])]))
        self.assertEqual([i["name"] for i in graph["inputs"]], ["x"])

    def test_fixed_batch(self):
        graph, _ = self.convert(small(batch=3))
        self.assertEqual(graph["inputs"][0]["shape"], [3, 3, 5, 5])

    def test_auto_pad(self):
        for how, pads in {"SAME_UPPER": [0, 0, 1, 1], "SAME_LOWER": [1, 1, 0, 0], "VALID": [0, 0, 0, 0]}.items():
            with self.subTest(how):
                found = self.ops(one("MaxPool", [3, 4, 4], auto_pad=how, kernel_shape=[2, 2]))
                self.assertEqual(found[0][2]["pads"], pads)

    def test_softmax_before_and_from_opset_13(self):
        self.assertEqual(self.ops(one("Softmax", [4, 1, 1], 11))[0][2], {"axis": 1})
        self.assertEqual(self.ops(one("Softmax", [4, 2, 2], 13))[0][2], {"axis": 3})
        self.bad(one("Softmax", [4, 2, 2], 11), "before opset 13")

    def test_clip_before_and_from_opset_11(self):
        bounds = [onnx.tensor("lo", [], [0.0]), onnx.tensor("hi", [], [6.0])]
        for model in (one("Clip", [4], 6 + 1, min=0.0, max=6.0),
                      one("Clip", [4], 12, ("x", "lo", "hi"), bounds)):
            self.assertEqual(self.ops(model)[0][2], {"min": 0.0, "max": 6.0})

    def test_pad_before_and_from_opset_11_and_18(self):
        wanted = [0, 0, 1, 2, 0, 0, 3, 4]
        pads = onnx.tensor("p", [8], wanted, onnx.INT64)
        spatial = onnx.tensor("p", [4], [1, 2, 3, 4], onnx.INT64)
        axes = onnx.tensor("a", [2], [2, -1], onnx.INT64)
        for model in (one("Pad", [2, 4, 4], 10, pads=wanted), one("Pad", [2, 4, 4], 11, ("x", "p"), [pads]),
                      one("Pad", [2, 4, 4], 18, ("x", "p", "", "a"), [spatial, axes])):
            self.assertEqual(self.ops(model)[0][2]["pads"], wanted)

    def test_mean_over_the_spatial_axes(self):
        axes = onnx.tensor("a", [2], [-1, 2], onnx.INT64)
        self.assertEqual([o[:2] for o in self.ops(one("ReduceMean", [2, 4, 4], 13, axes=[2, 3], keepdims=0))],
                         [("y/GlobalAveragePool", "GlobalAveragePool"), ("y", "Flatten")])
        self.assertEqual([o[1] for o in self.ops(one("ReduceMean", [2, 4, 4], 18, ("x", "a"), [axes]))],
                         ["GlobalAveragePool"])
        self.assertEqual([o[:2] for o in self.ops(one("ReduceMax", [2, 4, 4], 13, axes=[2, 3], keepdims=0))],
                         [("y/GlobalMaxPool", "GlobalMaxPool"), ("y", "Flatten")])

    def test_reductions(self):
        axes = onnx.tensor("a", [1], [-1], onnx.INT64)
        for operator, opset in (("ReduceSum", 13), ("ReduceMean", 18), ("ReduceMax", 18), ("ReduceMin", 18)):
            with self.subTest(operator):
                found = self.ops(one(operator, [2, 4, 4], opset, ("x", "a"), [axes], keepdims=0))
                self.assertEqual([o[1:] for o in found], [(operator, {"axes": [3], "keepdims": False})])
        self.assertEqual(self.ops(one("ReduceSum", [2, 4], 11, axes=[2, 1]))[0][2],
                         {"axes": [1, 2], "keepdims": True})
        self.assertEqual(self.ops(one("ReduceMin", [4], 13, batch=2))[0][2], {"axes": [0, 1], "keepdims": True})
        self.bad(one("ReduceMean", [2, 4, 4], 13), "symbolic batch")

    def test_instance_normalization(self):
        tensors = [onnx.tensor("s", [3], [1.0, 2.0, 3.0]), onnx.tensor("b", [3], [4.0, 5.0, 6.0])]
        graph, params = self.convert(one("InstanceNormalization", [3, 2, 2], 17, ("x", "s", "b"), tensors,
                                         epsilon=0.5))
        self.assertEqual([(n["op"], n["attrs"]) for n in graph["nodes"]],
                         [("InstanceNormalization", {"epsilon": 0.5})])
        self.assertEqual((params["y.weight"][1], params["y.bias"][1]), ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)))
        self.bad(one("InstanceNormalization", [2, 2, 2], 17, ("x", "s", "b"), tensors), "wanted [2]")

    def test_one_spatial_axis(self):
        """A width of images of one row."""
        weight, bias = onnx.tensor("w", [4, 3, 2], WEIGHT[:24]), onnx.tensor("b", [4], [1.0, 2.0, 3.0, 4.0])
        graph, params = self.convert(one("Conv", [3, 9], inputs=("x", "w", "b"), initializers=[weight, bias], strides=[2],
                                         pads=[1, 2], dilations=[3]))
        self.assertEqual([(n["name"], n["op"]) for n in graph["nodes"]],
                         [("y/Reshape", "Reshape"), ("y/Conv", "Conv"), ("y", "Reshape")])
        self.assertEqual(graph["nodes"][0]["attrs"], {"shape": ["N", 3, 1, 9]})
        conv = graph["nodes"][1]["attrs"]
        self.assertEqual([conv[k] for k in ("kernel_shape", "strides", "pads", "dilations")], [[1, 2], [1, 2], [0, 1, 0, 2], [1, 3]])
        self.assertEqual(graph["nodes"][2]["attrs"], {"shape": ["N", 4, 5]})
        self.assertEqual(params["y/Conv.weight"], ([4, 3, 1, 2], tuple(WEIGHT[:24])))
        transposed = self.ops(one("ConvTranspose", [4, 9], inputs=("x", "w"), initializers=[weight], output_shape=[10]))
        self.assertEqual([transposed[1][2][k] for k in ("pads", "output_padding")], [[0, 0, 0, 0], [0, 0]])
        self.assertEqual(transposed[2][2], {"shape": ["N", 3, 10]})
        pool = self.ops(one("AveragePool", [3, 9], kernel_shape=[4], auto_pad="SAME_LOWER", strides=[2]))
        self.assertEqual([pool[1][2][k] for k in ("kernel_shape", "strides", "pads")], [[1, 4], [1, 2], [0, 2, 0, 1]])
        self.assertEqual([n[1] for n in self.ops(one("GlobalMaxPool", [3, 9]))], ["Reshape", "GlobalMaxPool", "Reshape"])
        vector = [onnx.tensor(name, [3], [1.0, 2.0, 3.0]) for name in "sbmv"]
        for op, names in (("InstanceNormalization", ("x", "s", "b")), ("BatchNormalization", ("x", "s", "b", "m", "v"))):
            found = self.ops(one(op, [3, 9], inputs=names, initializers=vector[:len(names) - 1]))
            self.assertEqual([n[1] for n in found], ["Reshape", op, "Reshape"])
        self.bad(one("MaxPool", [3, 4, 9], kernel_shape=[2]), "found an input of 4 axes", "(1)")
        self.bad(one("MaxPool", [3, 4, 9], kernel_shape=[2, 2, 2]), "found 3 numbers, wanted 2")
        self.bad(one("Conv", [3, 4, 9], inputs=("x", "w"), initializers=[weight]), "weight: found shape [4, 3, 2]")
        self.bad(one("Conv", [3, 9], inputs=("x", "w"), initializers=[weight], strides=[1, 1]), "found 2 numbers, wanted 1")
        self.bad(one("GlobalMaxPool", [3]), "found an input of 2 axes")

    def moved(self, op, shape, lists=(), opset=17, **attributes):
        """The nodes that a node becomes, whose inputs behind the first are lists of integers or floats."""
        tensors = []
        for i, values in enumerate(lists):
            whole = values is not None and all(isinstance(v, int) for v in values)
            tensors.append(None if values is None else onnx.tensor(
                f"l{i}", [len(values)], values, onnx.INT64 if whole else onnx.FLOAT))
        names = ["" if values is None else f"l{i}" for i, values in enumerate(lists)]
        return [o[1:] for o in self.ops(one(op, shape, opset, ("x", *names), [t for t in tensors if t], **attributes))]

    def test_other_shapes_and_places(self):
        self.assertEqual(self.moved("Reshape", [6, 4], [[0, 2, 3, -1]]), [("Reshape", {"shape": ["N", 2, 3, 4]})])
        self.assertEqual(self.moved("Reshape", [6, 4], [[0, -1]]), [("Flatten", {"axis": 1})])
        self.assertEqual(self.moved("Squeeze", [6, 1, 4], [[2]]), [("Reshape", {"shape": ["N", 6, 4]})])
        self.assertEqual(self.moved("Unsqueeze", [6], [[-1, 2]]), [("Reshape", {"shape": ["N", 6, 1, 1]})])
        self.assertEqual(self.moved("Unsqueeze", [6], opset=12, axes=[2]), [("Reshape", {"shape": ["N", 6, 1]})])
        self.assertEqual(self.moved("Transpose", [6, 4, 5], perm=[0, 2, 3, 1]), [("Transpose", {"perm": [0, 2, 3, 1]})])
        # No element changes its place.
        self.assertEqual(self.moved("Transpose", [6, 1, 1], perm=[0, 3, 2, 1]), [("Reshape", {"shape": ["N", 1, 1, 6]})])
        self.assertEqual(self.moved("Transpose", [1, 4, 1], perm=[0, 3, 2, 1]), [("Identity", {})])

    def test_blocks_of_pixels(self):
        for mode, split, perm in (("DCR", [2, 2, 3, 4, 5], [0, 3, 4, 1, 5, 2]), ("CRD", [3, 2, 2, 4, 5], [0, 1, 4, 2, 5, 3])):
            self.assertEqual(self.moved("DepthToSpace", [12, 4, 5], blocksize=2, mode=mode),
                             [("Transpose", {"perm": perm, "input_shape": ["N", *split],
                                             "output_shape": ["N", 3, 8, 10]})])
        self.assertEqual(self.moved("SpaceToDepth", [3, 8, 10], blocksize=2),
                         [("Transpose", {"perm": [0, 3, 5, 1, 2, 4], "input_shape": ["N", 3, 4, 2, 5, 2],
                                         "output_shape": ["N", 12, 4, 5]})])
        self.bad(one("DepthToSpace", [6, 4, 5], blocksize=2), "blocksize", "found 2 for shape [N, 6, 4, 5]")
        self.bad(one("DepthToSpace", [4, 4, 5], blocksize=2, mode="RCD"), "mode: found RCD")

    def test_slices(self):
        far = 9223372036854775807
        wanted = [("Slice", {"starts": [2], "ends": [6], "axes": [1], "steps": [1]})]
        self.assertEqual(self.moved("Slice", [6, 4], opset=9, starts=[0, 2], ends=[far, far], axes=[0, 1]), wanted)
        self.assertEqual(self.moved("Slice", [6, 4], [[-4], [far], [1]]), wanted)
        self.assertEqual(self.moved("Slice", [6, 4], [[far], [-far - 1], [-1], [-3]]),
                         [("Slice", {"starts": [3], "ends": [-5], "axes": [2], "steps": [-3]})])
        self.assertEqual(self.moved("Slice", [6, 4], [[0, 0], [6, 9], [1, 2]]), [("Identity", {})])
        self.bad(one("Slice", [6], 17, ("x", "s", "e"), [onnx.tensor("s", [1], [0], onnx.INT64),
                                                        onnx.tensor("e", [1], [1], onnx.INT64)]), "symbolic batch")

    def test_split(self):
        def parts(opset, sizes=None, axis=1, outputs=("a", "y", "c"), **attributes):
            nodes = [onnx.node("Split", ["x"] + (["s"] if sizes else []), list(outputs), "cut", axis=axis, **attributes),
                     onnx.node("Relu", ["a"], ["r"]), onnx.node("Relu", ["c"], ["z"])]
            tensors = [onnx.tensor("s", [len(sizes)], sizes, onnx.INT64)] if sizes else []
            return onnx.model(onnx.graph(nodes, [onnx.value("x", ["N", 6, 4])],
                                         [onnx.value("y", []), onnx.value("r", []), onnx.value("z", [])], tensors), opset)

        def bounds(model):
            graph, _ = self.convert(model)
            self.assertEqual(graph["outputs"], ["y", "r", "z"])
            return [(n["name"], n["attrs"]["starts"], n["attrs"]["ends"]) for n in graph["nodes"] if n["op"] == "Slice"]

        self.assertEqual(bounds(parts(17)), [("cut", [0], [2]), ("y", [2], [4]), ("cut/2", [4], [6])])
        self.assertEqual(bounds(parts(12, split=[1, 2, 3])), [("cut", [0], [1]), ("y", [1], [3]), ("cut/2", [3], [6])])
        self.assertEqual(bounds(parts(13, [3, 2, 1], -2)), [("cut", [0], [3]), ("y", [3], [5]), ("cut/2", [5], [6])])
        self.bad(parts(17, [3, 2]), "found 3 outputs of an axis of 6")
        self.bad(parts(17, None, 2), "found 3 outputs of an axis of 4")
        self.bad(parts(17, None, 0), "symbolic batch")

    def test_gather_tile_expand(self):
        self.assertEqual(self.moved("Gather", [6, 4], [[5, 3, 1]], axis=1),
                         [("Slice", {"starts": [5], "ends": [0], "axes": [1], "steps": [-2]})])
        found = self.moved("Gather", [6, 4], [[0, 1, 4, 4]], axis=1)
        self.assertEqual([o[0] for o in found], ["Slice", "Slice", "Slice", "Concat"])
        self.assertEqual([(o[1]["starts"], o[1]["ends"]) for o in found[:3]], [([0], [2]), ([4], [5]), ([4], [5])])
        one_row = self.ops(one("Gather", [6, 4], 17, ("x", "i"), [onnx.tensor("i", [], [-1], onnx.INT64)], axis=1))
        self.assertEqual([o[1:] for o in one_row], [("Slice", {"starts": [5], "ends": [6], "axes": [1], "steps": [1]}),
                                                    ("Flatten", {"axis": 1})])
        self.bad(one("Gather", [6], 17, ("x", "i"), [onnx.tensor("i", [1], [6], onnx.INT64)], axis=1), "input indices")
        self.assertEqual(self.moved("Tile", [6, 4], [[1, 2, 3]]), [("Concat", {"axis": 2}), ("Concat", {"axis": 1})])
        graph, params = self.convert(one("Expand", [6, 1, 1], 17, ("x", "s"),
                                         [onnx.tensor("s", [3], [1, 2, 3], onnx.INT64)]))
        self.assertEqual([(n["op"], n["attrs"]) for n in graph["nodes"]], [("Mul", {"operand": [2, 3]})])
        self.assertEqual(params["y.weight"], ([2, 3], (1.0,) * 6))

    def test_pad_modes(self):
        for mode in ("reflect", "edge", "wrap"):
            found = self.moved("Pad", [6, 4], [[0, 2, -1, 0, 0, 1]], mode=mode, opset=19)
            self.assertEqual(found, [("Pad", {"pads": [0, 2, -1, 0, 0, 1], "value": 0.0, "mode": mode})])

    def test_pads_as_pytorch_computes_them(self):
        """A list of pairs from the last axis on: zeros behind it, turned round, the other way up."""
        def whole(name, dims, *values):
            return onnx.tensor(name, dims, values, onnx.INT64)

        tensors = [whole("pairs", [4], 1, 2, 3, 0), whole("four", [1], 4), whole("two", [2], -1, 2), whole("last", [1], -1),
                   whole("begin", [1], -(1 << 63)), whole("zero", [1], 0), whole("one", [1], 1)]
        nodes = [onnx.node("ConstantOfShape", ["four"], ["zeros"], value=onnx.tensor("", [1], [0], onnx.INT64)),
                 onnx.node("Concat", ["pairs", "zeros"], ["all"], axis=0),
                 onnx.node("Reshape", ["all", "two"], ["rows"]),
                 onnx.node("Slice", ["rows", "last", "begin", "zero", "last"], ["reversed"]),
                 onnx.node("Transpose", ["reversed"], ["columns"], perm=[1, 0]),
                 onnx.node("Reshape", ["columns", "last"], ["list"]), onnx.node("Cast", ["list"], ["pads"], to=7),
                 onnx.node("Pad", ["x", "pads"], ["y"], mode="reflect")]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", ["N", 3, 4, 5])], [onnx.value("y", [])], tensors), 17)
        self.assertEqual([o[1:] for o in self.ops(model)],
                         [("Pad", {"pads": [0, 0, 3, 1, 0, 0, 0, 2], "value": 0.0, "mode": "reflect"})])

    def test_resize(self):
        """As TensorFlow and PyTorch export it, and before opset 11."""
        half = {"sizes": [8, 10], "mode": "nearest", "coordinate_transformation_mode": "half_pixel",
                "nearest_mode": "round_prefer_floor"}
        scales = [1.0, 1.0, 2.0, 2.0]
        self.assertEqual(self.moved("Resize", [3, 4, 5], [None, scales]), [("Resize", {**half, "scales": [2.0, 2.0]})])
        self.assertEqual(self.moved("Resize", [3, 4, 5], [None, [2.0, 2.0]], 18, axes=[2, 3]),
                         [("Resize", {**half, "scales": [2.0, 2.0]})])
        floor = {**half, "scales": [2.0, 2.0], "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        self.assertEqual(self.moved("Resize", [3, 4, 5], [scales], 10), [("Resize", floor)])
        self.assertEqual(self.moved("Upsample", [3, 4, 5], [scales], 9), [("Resize", floor)])
        linear = {"sizes": [7, 9], "mode": "linear", "coordinate_transformation_mode": "align_corners"}
        nodes = [onnx.node("Shape", ["x"], ["s"]), onnx.node("Slice", ["s", "zero", "two"], ["nc"]),
                 onnx.node("Concat", ["nc", "hw"], ["sizes"], axis=0),
                 onnx.node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear",
                           coordinate_transformation_mode="align_corners")]
        tensors = [onnx.tensor("zero", [1], [0], onnx.INT64), onnx.tensor("two", [1], [2], onnx.INT64),
                   onnx.tensor("hw", [2], [7, 9], onnx.INT64)]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", ["N", 3, 4, 5])], [onnx.value("y", [])], tensors), 17)
        self.assertEqual([o[1:] for o in self.ops(model)], [("Resize", linear)])
        for scale, text in (([1.0, 2.0, 2.0, 2.0], "axis 1"), ([1.0, 1.0, 0.1, 1.0], "found 0.1"), ([2.0], "wanted 4")):
            self.bad(one("Resize", [3, 4, 5], 17, ("x", "", "s"), [onnx.tensor("s", [len(scale)], scale)]), text)
        self.bad(one("Resize", [3, 4, 5], 17, ("x", "", "s"), [onnx.tensor("s", [4], scales)], mode="linear",
                     coordinate_transformation_mode="tf_crop"), "tf_crop")
        tf = {**half, "scales": [2.0, 2.0], "coordinate_transformation_mode": "tf_half_pixel_for_nn"}
        self.assertEqual(self.moved("Resize", [3, 4, 5], [None, scales], 11,
                                    coordinate_transformation_mode="tf_half_pixel_for_nn"), [("Resize", tf)])

    def test_antialias(self):
        """Of linear and cubic, where an axis shrinks."""
        def moved(scales, **attributes):
            [(operator, attrs)] = self.moved("Resize", [3, 4, 6], [None, [1.0, 1.0, *scales]], 18, antialias=1, **attributes)
            self.assertEqual(operator, "Resize")
            return attrs
        self.assertEqual(moved([0.5, 0.5], mode="linear"),
                         {"sizes": [2, 3], "mode": "linear", "coordinate_transformation_mode": "half_pixel",
                          "scales": [0.5, 0.5], "antialias": True})
        self.assertTrue(moved([2.0, 0.5], mode="cubic")["antialias"])
        self.assertNotIn("antialias", moved([2.0, 1.0], mode="linear"))
        self.assertNotIn("antialias", moved([0.5, 0.5], mode="nearest"))
        # By sizes; the one scale for both axes is the lesser, by which W becomes nothing.
        sizes = onnx.tensor("sizes", [2], [2, 6], onnx.INT64)
        resize = lambda shape, **more: one("Resize", shape, 18, ("x", "", "", "sizes"), [sizes], mode="linear", antialias=1,
                                           axes=[2, 3], **more)
        self.assertEqual(self.ops(resize([3, 4, 5]))[0][2]["antialias"], True)
        self.assertNotIn("antialias", self.ops(resize([3, 1, 5]))[0][2])
        self.bad(resize([3, 90, 7], keep_aspect_ratio_policy="not_larger"), "found 0.0222222 for an extent of 7")

    def test_nearest_pixels_by_a_scale(self):
        """As PyTorch and ONNX Runtime have them: a third, rounded to f32, still takes every third pixel."""
        for scale, extent, wanted in ((1 / 3, 15, [0, 3, 6, 9, 12]), (0.2, 15, [0, 5, 10]), (0.7, 10, [0, 1, 2, 4, 5, 7, 8]),
                                      (0.6, 15, [0, 1, 3, 5, 6, 8, 10, 11, 13])):
            with self.subTest(scale):
                scales = onnx.tensor("s", [4], [1.0, 1.0, 1.0, scale])
                self.file("m.onnx", one("Resize", [1, 1, extent], 18, ("x", "", "s"), [scales], mode="nearest",
                                        nearest_mode="floor", coordinate_transformation_mode="asymmetric"))
                self.file("x.npy", harness.npy((1, 1, 1, extent), list(range(extent))))
                self.accepted(self.execute("run", "m.onnx", "--device", "cpu", "--policy", "sequential", "--input", "x.npy",
                                           "--output", "y.npy", "--verify", "full"))
                self.assertEqual(list(harness.read_npy(self.folder / "y.npy")[1]), wanted)

    def test_layer_normalization(self):
        tensors = [onnx.tensor("s", [4], [1.0, 2.0, 3.0, 4.0]), onnx.tensor("b", [4], [0.5, 0.25, 0.0, -1.0])]
        model = one("LayerNormalization", [3, 4], 17, ("x", "s", "b"), tensors, epsilon=0.5)
        graph, params = self.convert(model)
        self.assertEqual([n["op"] for n in graph["nodes"]],
                         ["ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"])
        self.assertEqual(graph["outputs"], ["y"])
        self.assertEqual(params["y.weight"][1], (0.5, 0.25, 0.0, -1.0))
        x = [((i * 5) % 11 - 4) / 4 for i in range(12)]
        self.file("x.npy", harness.npy((1, 3, 4), x))
        self.accepted(self.execute("run", "m.onnx", "--device", "cpu", "--policy", "sequential", "--input", "x.npy",
                                   "--output", "y.npy", "--verify", "full"))
        _, found = harness.read_npy(self.folder / "y.npy")
        for row in range(3):
            values = x[4 * row:4 * row + 4]
            mean = sum(values) / 4
            spread = (sum((v - mean) ** 2 for v in values) / 4 + 0.5) ** 0.5
            for i, (scale, shift) in enumerate(zip((1.0, 2.0, 3.0, 4.0), (0.5, 0.25, 0.0, -1.0))):
                self.assertAlmostEqual(found[4 * row + i], (values[i] - mean) / spread * scale + shift, places=5)
        self.bad(one("LayerNormalization", [3, 4], 17, ("x", "s"), tensors[:1], axis=0), "behind the first")

    def test_matmul_of_more_axes(self):
        for shape in ([3, 2], [3, 1, 2]):
            with self.subTest(shape):
                self.convert(one("MatMul", shape, 17, ("x", "m"), [onnx.tensor("m", [2, 4], MATRIX)]))
                x = [((i * 5) % 11 - 4) / 4 for i in range(6)]
                self.file("x.npy", harness.npy([1, *shape], x))
                self.accepted(self.execute("run", "m.onnx", "--device", "cpu", "--policy", "sequential", "--input", "x.npy",
                                           "--output", "y.npy", "--verify", "full"))
                found_shape, found = harness.read_npy(self.folder / "y.npy")
                self.assertEqual(found_shape, (1, *shape[:-1], 4))
                for row in range(3):
                    for column in range(4):
                        wanted = sum(x[2 * row + i] * MATRIX[4 * i + column] for i in range(2))
                        self.assertAlmostEqual(found[4 * row + column], wanted, places=5)
        self.bad(one("MatMul", [3, 5], 17, ("x", "m"), [onnx.tensor("m", [2, 4], MATRIX)]), "fits the last axis")

    def test_matmul_and_bias(self):
        nodes = [onnx.node("MatMul", ["x", "m"], ["h"], "fc"), onnx.node("Add", ["h", "v"], ["y"], "bias")]
        tensors = [onnx.tensor("m", [2, 4], MATRIX), onnx.tensor("v", [4], [1.0, 2.0, 3.0, 4.0])]
        graph, params = self.convert(onnx.model(onnx.graph(
            nodes, [onnx.value("x", ["N", 2])], [onnx.value("y", [])], tensors)))
        self.assertEqual([(n["name"], n["attrs"]) for n in graph["nodes"]],
                         [("fc", {"out_features": 4, "bias": True})])
        self.assertEqual(params["fc.bias"][1], (1.0, 2.0, 3.0, 4.0))

    def test_constant_per_channel_is_a_batch_norm(self):
        scale = onnx.tensor("k", [1, 3, 1, 1], [1.0, 2.0, 3.0])
        graph, params = self.convert(one("Mul", [3, 2, 2], 17, ("k", "x"), [scale]))
        self.assertEqual(graph["nodes"][0]["op"], "BatchNormalization")
        self.assertEqual(params["y.weight"][1], (1.0, 2.0, 3.0))
        self.assertEqual(params["y.running_var"][1], (1.0, 1.0, 1.0))

    def test_other_constants_are_operands(self):
        row = onnx.tensor("k", [2], [1.0, 2.0])
        number = onnx.tensor("k", [], [3.0])
        for operator, inputs, constant, attrs, values in (
                ("Mul", ("x", "k"), row, {"operand": [2]}, (1.0, 2.0)),
                ("Div", ("x", "k"), row, {"operand": [2]}, (1.0, 2.0)),
                ("Div", ("k", "x"), number, {"operand": [1], "operand_first": True}, (3.0,)),
                ("Sub", ("k", "x"), row, {"operand": [2], "operand_first": True}, (1.0, 2.0)),
                ("Max", ("x", "k"), number, {"operand": [1]}, (3.0,)),
                ("Pow", ("x", "k"), number, {"operand": [1]}, (3.0,))):
            with self.subTest(operator=operator, inputs=inputs):
                graph, params = self.convert(one(operator, [3, 2, 2], 17, inputs, [constant]))
                self.assertEqual([(n["op"], n["attrs"]) for n in graph["nodes"]], [(operator, attrs)])
                self.assertEqual(params["y.weight"][1], values)
        self.bad(one("Mul", [3, 2, 2], 17, ("x", "k"), [onnx.tensor("k", [3], [1.0, 2.0, 3.0])]),
                 "[N, 3, 2, 2] and [3]", "broadcast")

    def test_constants_of_shapes(self):
        """Weights that are one number, few and many of them."""
        for kernel in (1, 40):
            shape = onnx.tensor("d", [4], [2, 3, kernel, kernel], onnx.INT64)
            nodes = [onnx.node("ConstantOfShape", ["d"], ["w"], value=onnx.tensor("", [1], [0.5])),
                     onnx.node("ConstantOfShape", ["e"], ["m"], value=onnx.tensor("", [1], [0.25])),
                     onnx.node("Transpose", ["m"], ["t"]), onnx.node("Conv", ["x", "w"], ["c"], "conv"),
                     onnx.node("Flatten", ["c"], ["f"]), onnx.node("MatMul", ["f", "t"], ["y"], "fc")]
            columns = 2 * (41 - kernel) ** 2
            _, params = self.convert(onnx.model(onnx.graph(
                nodes, [onnx.value("x", ["N", 3, 40, 40])], [onnx.value("y", [])],
                [shape, onnx.tensor("e", [2], [3, columns], onnx.INT64)])))
            self.assertEqual(params["conv.weight"], ([2, 3, kernel, kernel], (0.5,) * (6 * kernel * kernel)))
            self.assertEqual(params["y.weight"], ([3, columns], (0.25,) * (3 * columns)))
        endless = onnx.tensor("d", [2], [1 << 40, 1 << 40], onnx.INT64)
        self.bad(onnx.model(onnx.graph([onnx.node("ConstantOfShape", ["d"], ["w"]), onnx.node("Add", ["x", "w"], ["y"])],
                                       [onnx.value("x", ["N", 4])], [onnx.value("y", [])], [endless])), "too large")

    def test_functions_of_one_number(self):
        for operator, given, wanted in (
                ("Elu", {"alpha": 0.5}, {"alpha": 0.5}), ("Elu", {}, {"alpha": 1.0}),
                ("HardSigmoid", {"beta": 0.25}, {"alpha": 0.2, "beta": 0.25}), ("HardSwish", {}, {}),
                ("Selu", {"gamma": 2.0}, {"alpha": 1.6732631921768188, "gamma": 2.0}),
                ("Swish", {"alpha": 1.5}, {"alpha": 1.5}), ("Sqrt", {}, {}), ("Abs", {}, {}), ("Neg", {}, {}),
                ("Exp", {}, {}), ("Softplus", {}, {}), ("Erf", {}, {}), ("Gelu", {}, {})):
            with self.subTest(operator=operator, given=given):
                self.assertEqual(self.ops(one(operator, [3, 2, 2], 24, **given))[0][1:], (operator, wanted))
        self.bad(one("Gelu", [3], 20, approximate="tanh"), "approximate", "tanh")
        slope = onnx.tensor("k", [3, 1, 1], [0.5, 0.25, 0.125])
        graph, params = self.convert(one("PRelu", [3, 2, 2], 17, ("x", "k"), [slope]))
        self.assertEqual(graph["nodes"][0]["attrs"], {"operand": [3, 1, 1]})
        self.assertEqual(params["y.weight"], ([3, 1, 1], (0.5, 0.25, 0.125)))

    def test_a_square_is_a_product(self):
        graph, params = self.convert(one("Pow", [3], 17, ("x", "k"), [onnx.tensor("k", [], [2.0])]))
        self.assertEqual([(n["op"], n["inputs"]) for n in graph["nodes"]], [("Mul", ["x", "x"])])
        self.assertEqual(params, {})

    def test_chains(self):
        row = onnx.tensor("k", [2], [1.0, 2.0])
        graph, params = self.convert(one("Mean", [3, 2, 2], 17, ("k", "x", "x"), [row]))
        self.assertEqual([(n["name"], n["op"], n["inputs"]) for n in graph["nodes"]],
                         [("y/Add", "Add", ["x"]), ("y/Add_2", "Add", ["y/Add", "x"]), ("y", "Mul", ["y/Add_2"])])
        self.assertEqual((params["y/Add.weight"][1], params["y.weight"]),
                         ((1.0, 2.0), ([1], struct.unpack("<f", struct.pack("<f", 1 / 3)))))
        for operator in ("Sum", "Max", "Min"):
            with self.subTest(operator):
                ours = "Add" if operator == "Sum" else operator
                found = self.ops(one(operator, [3], 17, ("x", "x", "x")))
                self.assertEqual([o[:2] for o in found], [("y/" + ours, ours), ("y", ours)])
                self.assertEqual([o[1] for o in self.ops(one(operator, [3], 17))], ["Identity"])
        self.bad(one("Sum", [3], 17, ("k", "k"), [row]), "2 constants")
        self.bad(one("Max", [3], 17, ("k", "k", "k"), [row]), "3 constants")

    def test_two_computed_operands(self):
        nodes = [onnx.node("GlobalAveragePool", ["x"], ["p"], "pool")]
        for operator in ("Add", "Mul", "Sub", "Div", "Max", "Min", "Pow"):
            nodes.append(onnx.node(operator, ["x", "p"], [operator]))
        graph, _ = self.convert(onnx.model(onnx.graph(
            nodes, [onnx.value("x", ["N", 3, 2, 2])], [onnx.value(n, []) for n in ("Add", "Mul", "Sub")])))
        self.assertEqual([n["op"] for n in graph["nodes"][1:]], ["Add", "Mul", "Sub", "Div", "Max", "Min", "Pow"])

    def test_weights_in_constant_nodes_and_behind_identities(self):
        nodes = [onnx.node("Constant", [], ["k"], value=onnx.tensor("", [4, 2], MATRIX)),
                 onnx.node("Transpose", ["k"], ["t"], perm=[1, 0]), onnx.node("Identity", ["t"], ["i"]),
                 onnx.node("MatMul", ["x", "i"], ["y"])]
        _, params = self.convert(onnx.model(onnx.graph(nodes, [onnx.value("x", ["N", 2])], [onnx.value("y", [])])))
        self.assertEqual(params["y.weight"], ([4, 2], tuple(MATRIX)))

    def test_external_data(self):
        self.file("w.bin", b"\0" * 16 + onnx.floats(WEIGHT))
        tensors = [onnx.tensor("w", [2, 3, 3, 3], more=onnx.external("w.bin", offset=16, length=216)),
                   onnx.tensor("b", [2], [0.5, -0.25]), onnx.tensor("m", [2, 4], MATRIX),
                   onnx.tensor("v", [4], [1.0, 2.0, 3.0, 4.0])]
        _, params = self.convert(small(initializers=tensors))
        self.assertEqual(params["conv.weight"][1], tuple(WEIGHT))

    def test_what_is_read_is_not_replaced(self):
        """Not by the weights either, which are called like the graph."""
        data = onnx.floats(WEIGHT)
        self.file("data.safetensors", data)
        tensors = [onnx.tensor("w", [2, 3, 3, 3], more=onnx.external("data.safetensors", length=216)),
                   onnx.tensor("b", [2], [0.5, -0.25]), onnx.tensor("m", [2, 4], MATRIX),
                   onnx.tensor("v", [4], [1.0, 2.0, 3.0, 4.0])]
        model = self.file("m.onnx", small(initializers=tensors))
        self.refused(self.execute("import", model, "-o", "data.json"), USAGE, "would replace", "data.safetensors")
        self.assertEqual((self.folder / "data.safetensors").read_bytes(), data)
        self.assertFalse((self.folder / "data.json").exists())
        self.accepted(self.execute("import", model, "-o", "other.json"))
        named = self.file("m.safetensors", small())
        self.refused(self.execute("run", named, "--device", "cpu"), BAD_INPUT)  # no .onnx: a graph's JSON
        self.refused(self.execute("import", named, "-o", "m.json"), USAGE, "would replace")
        self.assertEqual((self.folder / "m.safetensors").read_bytes(), small())


class Refusals(ImportTest):
    def test_an_absent_constant(self):
        content = onnx.model(onnx.graph(
            [onnx.node("Max", ["k", ""], ["m"]), onnx.node("Add", ["x", "m"], ["y"])], [onnx.value("x", ["N", 4])],
            [onnx.value("y", [])], [onnx.tensor("k", [], [1.0])]))
        self.bad(content, '"m" (Max): found 2 constants, or an absent one')

    def test_several_inputs_that_cannot_be(self):
        names = [f"input_{i}" for i in range(9)]
        content = onnx.model(onnx.graph(
            [onnx.node("Sum", names, ["y"])],
            [onnx.value(name, ["N", 4] if name == "input_3" else ["N", "M"]) for name in names], [onnx.value("y", [])]))
        self.bad(content, *[f'input "{name}": found a symbolic extent "M"' for name in names if name != "input_3"])

    def test_an_output_without_a_name(self):
        content = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", ["N", 4])],
                                        [onnx.value("y", []), b""], [onnx.tensor("", [], [1.0])]))
        self.bad(content, 'output "": found a constant')

    def test_everything_missing_is_told_at_once(self):
        nodes = [onnx.node("Conv", ["x", "w"], ["c"], "conv", strides=[1, 1, 1]),
                 onnx.node("Einsum", ["c"], ["e"], "sum"),
                 onnx.node("Gelu", ["e"], ["g"], "act", domain="com.microsoft"),
                 onnx.node("Relu", ["g"], ["r"], "fine"),
                 onnx.node("Pad", ["r", "p"], ["y"], "pad", mode="mirror", colour=3)]
        tensors = [onnx.tensor("w", [2, 3, 3, 3], WEIGHT), onnx.tensor("p", [8], [0] * 8, onnx.INT64)]
        content = onnx.model(onnx.graph(nodes, [onnx.value("x", ["N", 3, 5, 5])], [onnx.value("y", [])], tensors))
        err = self.bad(content, "4 of its", '"conv" (Conv): attribute strides: found 3 numbers',
                       '"sum" (Einsum): operator is not supported', '"act" (Gelu)', "com.microsoft",
                       "mode: found mirror", "attribute colour is not supported")
        self.assertNotIn("fine", err)
        code, out, err = self.execute("import", self.file("bad.onnx", content), "--check")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("Einsum", out)
        self.assertIn("opset 17", out)
        code, out, _ = self.execute("import", "bad.onnx", "--check", "--json", "-")
        report = json.loads(out)
        self.assertFalse(report["importable"])
        self.assertEqual([(o["op"], o["nodes"], o["unsupported"]) for o in report["operators"]],
                         [("Conv", 1, 1), ("Einsum", 1, 1), ("Gelu", 1, 1), ("Relu", 1, 0), ("Pad", 1, 1)])

    def test_check_of_a_good_model(self):
        out, err = self.accepted(self.execute("import", self.file("m.onnx", small()), "--check"))
        self.assertIn("Gemm", out)
        self.assertNotIn("in the way", out)
        self.assertEqual(sorted(os.listdir(self.folder)), ["m.onnx"])

    def test_shapes_and_types(self):
        self.bad(one("Relu", [3, "H", "W"]), 'input "x"', "axis 2", "H")
        self.bad(onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", ["N", 3], onnx.INT64)],
                                       [onnx.value("y", [])])), "int64", "float")
        self.bad(one("Reshape", [3, 4, 4], 17, ("x", "s"), [onnx.tensor("s", [3], [-1, 3, 8], onnx.INT64)]),
                 '"it" (Reshape)', "[-1, 3, 8]", "keeps the batch first")
        self.bad(one("Transpose", [3, 4, 4], perm=[1, 0, 2, 3]), "found 1 first", "symbolic batch")
        self.bad(one("Unsqueeze", [3], 12, axes=[0]), "symbolic batch")
        self.bad(one("MatMul", [3], 17, ("x", "x")), "wanted a constant")

    def test_numbers_that_json_has_no_word_for(self):
        pads = onnx.tensor("p", [8], [0, 0, 1, 1, 0, 0, 1, 1], onnx.INT64)
        low = onnx.tensor("v", [], [-float("inf")])
        self.assertLess(self.ops(one("Pad", [2, 4, 4], 11, ("x", "p", "v"), [pads, low]))[0][2]["value"], -3e38)
        self.bad(one("Pad", [2, 4, 4], 11, ("x", "p", "v"), [pads, onnx.tensor("v", [], [float("nan")])]), "nan")
        self.bad(one("LeakyRelu", [4], alpha=float("nan")), "alpha", "nan", "finite")
        self.assertLess(self.ops(one("Clip", [4], 12, ("x", "v"), [low]))[0][2]["min"], -3e38)

    def test_use(self):
        model = self.file("m.onnx", small())
        self.refused(self.execute("import", model), USAGE, "--output")
        self.refused(self.execute("import", model, "--check", "-o", "a.json"), USAGE, "--check")
        self.refused(self.execute("import", model, "-o", "a.safetensors"), USAGE, ".json")
        self.refused(self.execute("import", "nowhere.onnx", "-o", "a.json"), FAILURE, "nowhere.onnx")
        self.refused(self.execute("run", "nowhere.onnx", "--device", "cpu"), FAILURE, "nowhere.onnx")


class BadFiles(ImportTest):
    def test_not_a_model(self):
        self.bad(b"", "empty")
        self.bad(b"hello, world, this is no protobuf", "not an ONNX model")
        self.bad(onnx.integer(1, 8), "no graph")
        self.bad(one("Relu", [3], inputs=("x",)).replace(b"it", b"\xff\xfe"), "UTF-8")
        self.bad(onnx.model(b""), "inputs")

    def test_opsets(self):
        self.bad(small(6), "opset 6", "7 to")
        self.bad(small(999), "opset 999")
        self.bad(onnx.block(7, b""), "opset_import")

    def test_hostile_lengths_and_depth(self):
        self.bad(onnx.varint(7 << 3 | 2) + onnx.varint(1 << 62) + b"x", "byte 0")
        nested = b""
        for _ in range(100000):  # a graph in an attribute of a node of a graph …
            nested = onnx.block(6, nested) if len(nested) < 60000 else nested
        self.bad(small(nodes=[onnx.node("Relu", ["x"], ["y"], "it") + onnx.block(5, onnx.block(1, "g") + nested)]),
                 "attribute g is not supported")
        self.bad(onnx.block(7, onnx.block(1, b"") * 1000) + onnx.block(8, onnx.integer(2, 17)), "not supported")

    def test_tensors(self):
        def weight(tensor):
            return small(initializers=[tensor, onnx.tensor("b", [2], [0.5, -0.25]), onnx.tensor("m", [2, 4], MATRIX),
                                       onnx.tensor("v", [4], [1.0, 2.0, 3.0, 4.0])])
        self.bad(weight(onnx.tensor("w", [2, 3, 3, -3], WEIGHT)), '"w"', "-3", "axis 3")
        self.bad(weight(onnx.tensor("w", [1 << 40, 1 << 40], WEIGHT)), '"w"', "63 bits")
        self.bad(weight(onnx.tensor("w", [2, 3, 3, 4], WEIGHT)), "216 bytes of raw data", "288")
        self.bad(weight(onnx.tensor("w", [2] * 9, WEIGHT)), "9 axes")
        self.bad(weight(onnx.tensor("w", [2, 3, 3, 3], WEIGHT, 99)), '"w"', "not known")
        self.bad(weight(onnx.tensor("w", [2, 3, 3, 3], None)), "0 elements")
        self.bad(weight(onnx.tensor("w", [2, 3, 3, 3], WEIGHT, more=onnx.block(3, b""))), "segments")

    def test_external_data_that_must_not_be_read(self):
        (self.folder / "inside").mkdir()
        (self.folder / "secret").write_bytes(b"\0" * 216)
        os.symlink("../secret", self.folder / "inside" / "link")
        (self.folder / "inside" / "short").write_bytes(b"\0" * 100)
        for location, more, wanted in (("/etc/passwd", {}, "relative"), ("../secret", {}, "below"),
                                       ("link", {}, "below"), ("nowhere", {}, "is there"), ("", {}, "relative"),
                                       ("short", {}, "within"), ("short", {"offset": "-1"}, "number"),
                                       ("short", {"offset": 10 ** 17}, "within"), ("short", {"length": 7}, "7 bytes")):
            with self.subTest(location, **more):
                tensor = onnx.tensor("w", [2, 3, 3, 3], more=onnx.external(location, **more))
                model = self.file("inside/m.onnx", small(initializers=[tensor]))
                self.refused(self.execute("import", model, "-o", "out.json"), BAD_INPUT, '"w"', wanted)

    def test_graph(self):
        inputs, outputs = [onnx.value("x", ["N", 4])], [onnx.value("y", [])]

        def nodes(*list_):
            return onnx.model(onnx.graph(list_, inputs, outputs))
        self.bad(nodes(onnx.node("Relu", ["b"], ["a"], "one"), onnx.node("Relu", ["a"], ["b"], "two"),
                       onnx.node("Add", ["a", "x"], ["y"])), '"one"', '"two"', "cycles")
        self.bad(nodes(onnx.node("Relu", ["y"], ["y"], "self")), '"self"', "cycles")
        self.bad(nodes(onnx.node("Relu", ["x"], ["y"], "one"), onnx.node("Relu", ["x"], ["y"], "two")),
                 '"two"', '"y"', "once")
        self.bad(nodes(onnx.node("Relu", ["x"], ["x"])), "an input")
        self.bad(nodes(onnx.node("Relu", ["nothing"], ["y"], "it")), '"nothing"', '"it"')
        self.bad(nodes(onnx.node("Relu", ["x"], ["z"])), 'output[0]: found "y"')
        self.bad(small(inputs=[onnx.value("x", ["N", 3, 5, -5])]), '"x"', "-5")
        self.bad(small(inputs=[onnx.value("x", ["N", 3, 5, 5])] * 2), '"x"', "once")
        self.bad(small(initializers=[onnx.tensor("w", [1], [1.0])] * 2), '"w"', "once")
        self.bad(onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], inputs, [onnx.value("x", [])])),
                 'output "x"', "an input")

    def test_cut_off_and_damaged_files(self):
        """Imports or is refused; tests/unit/test_onnx_damage.c does every byte."""
        whole = small()
        code, *_ = self.execute("import", self.file("m.onnx", whole), "-o", "out.json")
        self.assertEqual(code, OK)
        random.seed(1)
        cases = [whole[:n] for n in random.sample(range(len(whole)), 20)]
        for _ in range(20):
            at = random.randrange(len(whole))
            cases.append(whole[:at] + bytes([random.randrange(256)]) + whole[at + 1:])
        for content in cases:
            code, _, err = self.execute("import", self.file("m.onnx", content), "-o", "out.json")
            self.assertIn(code, (OK, BAD_INPUT), err)


if __name__ == "__main__":
    harness.main()
