"""Importing ONNX: operators that become several of ours, constants that are computed, what each opset has."""
import math

import harness
import onnx_bytes as onnx
from test_import import ImportTest, one

X = [((i * 5) % 11 - 4) / 4 for i in range(24)]


def chain(nodes, tensors, shape, batch="N", opset=17, output="y"):
    return onnx.model(onnx.graph([onnx.node(op, list(inputs), [out], **attrs) for op, inputs, out, attrs in nodes],
                                 [onnx.value("x", [batch, *shape])], [onnx.value(output, [])], list(tensors)), opset)


class Numbers(ImportTest):
    def compute(self, model, shape, values, batch=1):
        """(shape, numbers) of a model's output on the CPU, checked against the reference, too."""
        self.file("x.npy", harness.npy((batch, *shape), values))
        self.accepted(self.execute("run", self.file("m.onnx", model), "--device", "cpu", "--policy", "sequential", "--batch",
                                   batch, "--input", "x.npy", "--output", "y.npy", "--verify", "full"))
        return harness.read_npy(self.folder / "y.npy")

    def check(self, model, shape, wanted, values=None, batch=1, places=5):
        values = X[:batch * math.prod(shape)] if values is None else values
        _, found = self.compute(model, shape, values, batch)
        self.assertEqual(len(found), len(wanted))
        for one_found, one_wanted in zip(found, wanted):
            self.assertAlmostEqual(one_found, one_wanted, places=places)

    def test_of_one_tensor(self):
        softplus = [math.log1p(math.exp(x)) for x in X[:6]]
        self.check(one("Mish", [6], 18), [6], [x * math.tanh(s) for x, s in zip(X, softplus)])
        self.check(one("Softsign", [6]), [6], [x / (1 + abs(x)) for x in X[:6]])
        positive = [1 + abs(x) for x in X[:6]]
        self.check(one("Reciprocal", [6]), [6], [1 / x for x in positive], positive)

    def test_reductions_of_sizes(self):
        rows = [X[4 * i:4 * i + 4] for i in range(3)]
        for op, wanted in (("ReduceL1", [sum(map(abs, row)) for row in rows]),
                           ("ReduceL2", [math.sqrt(sum(x * x for x in row)) for row in rows]),
                           ("ReduceSumSquare", [sum(x * x for x in row) for row in rows])):
            with self.subTest(op):
                self.check(one(op, [3, 4], axes=[2], keepdims=0), [3, 4], wanted)
                axes = onnx.tensor("a", [1], [2], onnx.INT64)
                self.check(one(op, [3, 4], 18, ("x", "a"), [axes], keepdims=1), [3, 4], wanted)

    def test_group_normalization(self):
        scale, bias = [1.0, 2.0, 3.0, 4.0], [0.5, 0.25, 0.0, -1.0]
        tensors = [onnx.tensor("s", [4], scale), onnx.tensor("b", [4], bias)]
        for shape in ([4, 1, 3], [4, 3]):
            with self.subTest(shape):
                model = one("GroupNormalization", shape, 21, ("x", "s", "b"), tensors, num_groups=2, epsilon=0.5)
                wanted = []
                for group in range(2):
                    values = X[6 * group:6 * group + 6]
                    mean = sum(values) / 6
                    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / 6 + 0.5)
                    for i, v in enumerate(values):
                        channel = 2 * group + i // 3
                        wanted.append((v - mean) / spread * scale[channel] + bias[channel])
                self.check(model, shape, wanted)
        self.bad(one("GroupNormalization", [4, 3], 21, ("x", "s", "b"), tensors, num_groups=3), "num_groups", "4 channels")
        self.bad(one("GroupNormalization", [4, 3], 18, ("x", "s", "b"), tensors, num_groups=2), "per group")

    def test_gemm(self):
        matrix = [((i * 5) % 13 - 6) / 8 for i in range(8)]
        whole = [((i * 3) % 7 - 3) / 2 for i in range(12)]
        tensors = [onnx.tensor("m", [2, 4], matrix), onnx.tensor("c", [3, 4], whole)]

        def wanted(x, alpha=1.0, beta=1.0):
            return [alpha * sum(x(row, k) * matrix[4 * k + column] for k in range(2)) + beta * whole[4 * row + column]
                    for row in range(3) for column in range(4)]

        self.check(one("Gemm", [2], 13, ("x", "m", "c"), tensors, 3, alpha=0.5, beta=0.25), [2],
                   wanted(lambda row, k: X[2 * row + k], 0.5, 0.25), batch=3)
        self.check(one("Gemm", [3], 13, ("x", "m", "c"), tensors, 2, transA=1), [3],
                   wanted(lambda row, k: X[3 * k + row]), batch=2)
        self.bad(one("Gemm", [3], 13, ("x", "m"), tensors, transA=1), "symbolic batch")

    def test_dropout(self):
        ratio, training = onnx.tensor("r", [], [0.0]), onnx.tensor("t", [], [1], onnx.BOOL)
        self.check(one("Dropout", [6], 13, ("x", "r", "t"), [ratio, training]), [6], X[:6])
        self.bad(one("Dropout", [6], 13, ("x", "", "t"), [training]), "training_mode", "0.5")

    def test_what_a_quotient_cannot_be(self):
        """0 / 1e-39 is 0, and x times infinity infinite: as products with a bias they would be NaN."""
        tiny, infinite = (onnx.tensor("k", [], [value]) for value in (1e-39, float("inf")))
        _, found = self.compute(one("Div", [3], 13, ("x", "k"), [tiny]), [3], [0.0, 0.0, 0.0])
        self.assertEqual(list(found), [0.0, 0.0, 0.0])
        self.assertEqual(self.ops(one("Mul", [3], 13, ("x", "k"), [infinite]))[0][1], "Mul")


class Constants(ImportTest):
    def operand(self, nodes, tensors, shape=(4,)):
        """The constant that is added to x in the end: (shape, values)."""
        graph, params = self.convert(chain([*nodes, ("Pow", ("x", "k"), "y", {})], tensors, list(shape)))
        return params["y.weight"]

    def test_casts(self):
        for to, values, wanted in ((onnx.INT8, [300, -129], (44.0, 127.0)), (onnx.UINT8, [300, -1], (44.0, 255.0)),
                                   (onnx.BOOL, [0, 7], (0.0, 1.0)), (onnx.INT64, [300, -1], (300.0, -1.0))):
            with self.subTest(to):
                found = self.operand([("Cast", ("c",), "n", {"to": to}), ("Cast", ("n",), "k", {"to": onnx.FLOAT})],
                                     [onnx.tensor("c", [2], values, onnx.INT64)], (3, 2))
                self.assertEqual(found, ([2], wanted))
        found = self.operand([("Cast", ("c",), "n", {"to": onnx.BOOL}), ("Cast", ("n",), "k", {"to": onnx.FLOAT})],
                             [onnx.tensor("c", [3], [0.4, -0.4, 0.0])], (2, 3))
        self.assertEqual(found, ([3], (1.0, 1.0, 0.0)))

    def test_arithmetic_as_its_type_has_it(self):
        """Each step of floats is rounded to f32: 1e9 + 3 - 1e9 is 0."""
        nodes = [("Add", ("c", "d"), "n", {}), ("Sub", ("n", "c"), "k", {})]
        found = self.operand(nodes, [onnx.tensor("c", [2], [1e9, 2.0]), onnx.tensor("d", [2], [3.0, 0.5])], (3, 2))
        self.assertEqual(found, ([2], (0.0, 0.5)))
        whole = [onnx.tensor(name, [2], values, onnx.INT32) for name, values in (("c", [65536, 3]), ("d", [65536, 5]))]
        found = self.operand([("Mul", ("c", "d"), "n", {}), ("Cast", ("n",), "k", {"to": onnx.FLOAT})], whole, (3, 2))
        self.assertEqual(found, ([2], (0.0, 15.0)))

    def test_shapes(self):
        found = self.operand([("Add", ("c", "d"), "k", {})],
                             [onnx.tensor("c", [1, 1, 1], [1.0]), onnx.tensor("d", [4], [1.0, 2.0, 3.0, 4.0])], (2, 4))
        self.assertEqual(found, ([1, 1, 4], (2.0, 3.0, 4.0, 5.0)))
        # One number of more axes than the tensor gives the result these: it is no square of x.
        self.bad(one("Pow", [4], 13, ("x", "k"), [onnx.tensor("k", [1, 1, 1], [2.0])]), "[1, 1, 1]")

    def test_padding_arithmetic(self):
        """As "same" padding is computed by exporters: max(0, (ceil(n / s) - 1) s + k - n), halved."""
        tensors = [onnx.tensor("stride", [1], [2.0]), onnx.tensor("one", [1], [1.0]), onnx.tensor("kernel", [1], [3.0]),
                   onnx.tensor("low", [], [0], onnx.INT64), onnx.tensor("two", [1], [2], onnx.INT64),
                   onnx.tensor("none", [2], [0, 0], onnx.INT64), onnx.tensor("first", [1], [2], onnx.INT64)]
        nodes = [("Shape", ("x",), "s", {}), ("Gather", ("s", "first"), "n", {}), ("Cast", ("n",), "f", {"to": onnx.FLOAT}),
                 ("Div", ("f", "stride"), "q", {}), ("Ceil", ("q",), "c", {}), ("Sub", ("c", "one"), "d", {}),
                 ("Mul", ("d", "stride"), "e", {}), ("Add", ("e", "kernel"), "g", {}), ("Sub", ("g", "f"), "h", {}),
                 ("Cast", ("h",), "i", {"to": onnx.INT64}), ("Clip", ("i", "low"), "j", {}),
                 ("Div", ("j", "two"), "before", {}), ("Sub", ("j", "before"), "after", {}),
                 ("Concat", ("none", "before", "before", "none", "after", "after"), "pads", {"axis": 0}),
                 ("Pad", ("x", "pads"), "y", {})]
        for extent, pads in ((6, [0, 0, 0, 0, 0, 0, 1, 1]), (5, [0, 0, 1, 1, 0, 0, 1, 1])):
            graph, _ = self.convert(chain(nodes, tensors, [2, extent, extent]))
            self.assertEqual(graph["nodes"][0]["attrs"]["pads"], pads)

    def test_products_and_bounds_of_extents(self):
        prod = [("Shape", ("x",), "s", {"start": 1}), ("ReduceProd", ("s",), "p", {"keepdims": 1}),
                ("Concat", ("n", "p"), "k", {"axis": 0}), ("Reshape", ("x", "k"), "y", {})]
        graph, _ = self.convert(chain(prod, [onnx.tensor("n", [1], [-1], onnx.INT64)], [2, 3, 4]))
        self.assertEqual(graph["nodes"][0]["op"], "Flatten")
        # A multiple of the batch may be bounded from below by what it is at least.
        batch = [("Shape", ("x",), "s", {"end": 1}), ("Clip", ("s", "low"), "c", {}),
                 ("Concat", ("c", "rest"), "k", {"axis": 0}), ("Reshape", ("x", "k"), "y", {})]
        rest = onnx.tensor("rest", [1], [-1], onnx.INT64)
        graph, _ = self.convert(chain(batch, [onnx.tensor("low", [], [1], onnx.INT64), rest], [2, 3]))
        self.assertEqual(graph["nodes"][0]["op"], "Flatten")
        self.bad(chain(batch, [onnx.tensor("low", [], [2], onnx.INT64), rest], [2, 3]), "multiple of the batch")

    def test_what_depends_on_the_batch_is_no_number(self):
        size = [("Shape", ("x",), "s", {"end": 1}), ("Cast", ("s",), "k", {"to": onnx.FLOAT})]
        single = onnx.tensor("i", [], [0], onnx.INT64)
        scalar = [("Shape", ("x",), "s", {}), ("Gather", ("s", "i"), "g", {}), ("Cast", ("g",), "k", {"to": onnx.FLOAT})]
        for op in ("Mul", "Div", "Add", "Sub", "Pow", "Max", "Min", "Sum", "PRelu"):
            with self.subTest(op):
                self.bad(chain([*size, (op, ("x", "k"), "y", {})], [], [4]), "depend on the batch")
        self.bad(chain([*scalar, ("Clip", ("x", "", "k"), "y", {})], [single], [4]), "depend on the batch")
        pads = onnx.tensor("p", [4], [0, 1, 0, 1], onnx.INT64)
        self.bad(chain([*scalar, ("Pad", ("x", "p", "k"), "y", {})], [single, pads], [4]), "depend on the batch")
        # A batch that the model gives is a number.
        graph, params = self.convert(chain([*size, ("Pow", ("x", "k"), "y", {})], [], [4], batch=3))
        self.assertEqual(params["y.weight"], ([1], (3.0,)))


class Opsets(ImportTest):
    def test_what_an_opset_does_not_have(self):
        axes, list_, bound = (onnx.tensor("a", [1], [1], onnx.INT64), onnx.tensor("l", [2], [1, 2], onnx.INT64),
                              onnx.tensor("v", [], [0.0]))
        pads = onnx.tensor("p", [4], [0, 1, 0, 1], onnx.INT64)
        cases = [
            (one("Clip", [4], 13, min=0.0, max=6.0), "attribute min", "opset 13"),
            (one("Clip", [4], 10, ("x", "v"), [bound]), "input 1", "opset 10"),
            (one("ReduceSum", [4], 13, axes=[1]), "attribute axes", "opset 13"),
            (one("ReduceMean", [4], 13, ("x", "a"), [axes]), "input 1", "opset 13"),
            (one("Squeeze", [1], 13, axes=[1]), "attribute axes"),
            (one("Unsqueeze", [4], 13, axes=[1]), "attribute axes"),
            (one("Split", [3], 13, axis=1, split=[1, 2]), "attribute split"),
            (one("Split", [3], 12, ("x", "l"), [list_], axis=1), "input 1"),
            (one("Slice", [4], 13, axes=[1], starts=[0], ends=[1]), "attribute axes", "attribute starts", "attribute ends"),
            (one("Pad", [2], 13, ("x", "p"), [pads], value=1.0), "attribute value"),
            (one("Pad", [2], 13, ("x", "p", "v", "a"), [pads, bound, axes]), "input 3"),
            (one("BatchNormalization", [1], 13, ("x", "s", "s", "s", "s"), [onnx.tensor("s", [1], [1.0])], training_mode=0),
             "attribute training_mode"),
            (one("Gelu", [4], 13), "opset 13 does not have it"),
            (one("HardSwish", [4], 13), "opset 13 does not have it"),
            (one("Mish", [4], 17), "opset 17 does not have it"),
            (one("LayerNormalization", [4], 16, ("x", "s"), [onnx.tensor("s", [4], [1.0] * 4)]), "opset 16 does not have it"),
        ]
        for model, *fragments in cases:
            with self.subTest(fragments[0]):
                self.bad(model, *fragments)

    def test_an_attribute_twice(self):
        node = onnx.node("LeakyRelu", ["x"], ["y"], "it", alpha=0.1)
        again = node + onnx.node("LeakyRelu", [], [], "", alpha=0.2)[len(onnx.node("LeakyRelu", [], [], "")):]
        model = onnx.model(onnx.graph([again], [onnx.value("x", ["N", 3])], [onnx.value("y", [])], []), 17)
        self.bad(model, "attribute alpha", "twice")

    def test_reasons_that_follow_are_counted(self):
        """Behind an unknown operator shape arithmetic cannot be computed: no fault of these nodes."""
        nodes = [("Mystery", ("x",), "m", {}), ("Shape", ("m",), "s", {}), ("Gather", ("s", "zero"), "g", {}),
                 ("Unsqueeze", ("g", "axis"), "u", {}), ("Concat", ("u", "rest"), "k", {"axis": 0}),
                 ("Reshape", ("x", "k"), "y", {})]
        tensors = [onnx.tensor("zero", [], [0], onnx.INT64), onnx.tensor("axis", [1], [0], onnx.INT64),
                   onnx.tensor("rest", [1], [-1], onnx.INT64)]
        err = self.bad(chain(nodes, tensors, [4, 2]), "Mystery", "operator is not supported", "nodes behind these")
        self.assertNotIn("found a constant", err)
        self.assertEqual(err.count("node \""), 1, err)


if __name__ == "__main__":
    harness.main()
