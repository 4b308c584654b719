"""Graph files that must be refused: exit 3 and one message that names the place."""
import json

import harness
from harness import BAD_INPUT, FAILURE, CommandTest, graph


def node(name, op, inputs, **attrs):
    return {"name": name, "op": op, "inputs": inputs, **({"attrs": attrs} if attrs else {})}


def conv_attr(**changed):
    """A change of the first convolution's attributes."""
    return lambda g: g["nodes"][0]["attrs"].update(changed)


class NotJson(CommandTest):
    """Files that are not the JSON they should be."""
    cold = True

    def refused_file(self, content, *fragments):
        path = self.file("bad.json", content)
        return self.refused(self.execute("run", path, "--device", "cpu"), BAD_INPUT, "bad.json",
                            *fragments)

    def test_truncated(self):
        text = json.dumps(graph(), indent=1)
        for length in (1, len(text) // 2, len(text) - 1):
            with self.subTest(length=length):
                self.refused_file(text[:length])

    def test_empty(self):
        self.refused_file("")

    def test_not_json(self):
        self.refused_file("\x7fELF\x02\x01\x01 no json")

    def test_trailing_text(self):
        self.refused_file(json.dumps(graph()) + " x")

    def test_not_utf8(self):
        self.refused_file(json.dumps(graph()).encode().replace(b"tiny", b"t\xff\xfey"))

    def test_nul_in_a_name(self):
        self.refused_file(json.dumps(graph()).replace("tiny", "t\\u0000y"))

    def test_deeply_nested(self):
        self.refused_file("[" * 200000 + "]" * 200000)
        self.refused_file('{"schema":' * 100000)

    def test_huge_number(self):
        self.refused_file(json.dumps(graph()).replace('"N"', "99999999999999999999999"))
        self.refused_file(json.dumps(graph()).replace('"N"', "1e999"))

    def test_huge_file(self):
        path = self.folder / "bad.json"
        with open(path, "wb") as sparse:
            sparse.truncate(8 << 30)
        self.refused(self.execute("run", path, "--device", "cpu", timeout=60), BAD_INPUT, "bad.json")

    def test_array_at_the_top(self):
        self.refused_file("[]")

    def test_duplicate_key(self):
        self.refused_file(json.dumps(graph()).replace('"name": "tiny"', '"name": "a", "name": "b"'))

    def test_missing_file(self):
        code, out, err = self.execute("run", self.folder / "none.json", "--device", "cpu")
        self.assertIn(code, (BAD_INPUT, FAILURE))
        self.assertEqual(out, "")
        self.assertIn("none.json", err)

    def test_folder_instead_of_a_file(self):
        code, _, err = self.execute("run", self.folder, "--device", "cpu")
        self.assertIn(code, (BAD_INPUT, FAILURE))
        self.assertIn(self.folder.name, err)


class NotAGraph(CommandTest):
    """JSON that is not a valid graph: what was found is named."""
    cold = True

    def refused_graph(self, change, *fragments):
        return self.refused(self.run_tiny(model=self.model(change)), BAD_INPUT, "tiny.json",
                            *fragments)

    def table(self, rows):
        for what, change, *fragments in rows:
            with self.subTest(what):
                self.refused_graph(change, *fragments)

    def test_keys(self):
        self.table([
            ("unknown key", lambda g: g.update(colour=1), "colour"),
            ("unknown key of a node", lambda g: g["nodes"][1].update(stride=2), "relu1", "stride"),
            ("unknown attribute", conv_attr(stride=[1, 1]), "conv1", "stride"),
            ("unknown key of an input", lambda g: g["inputs"][0].update(size=1), "size"),
            ("another schema", lambda g: g.update(schema="convsched.graph/2"), "convsched.graph/2"),
            ("no schema", lambda g: g.pop("schema"), "schema"),
            ("no nodes", lambda g: g.pop("nodes"), "nodes"),
            ("no outputs", lambda g: g.update(outputs=[]), "outputs"),
            ("a name that is a number", lambda g: g["nodes"][0].update(name=7), "name"),
            ("an empty name", lambda g: g["nodes"][0].update(name=""), "name"),
            ("a node that is text", lambda g: g["nodes"].append("Relu"), "nodes"),
            ("an unknown dtype", lambda g: g["inputs"][0].update(dtype="f99"), "f99"),
        ])

    def test_operators(self):
        self.table([
            ("unknown operator", lambda g: g["nodes"][1].update(op="Reloo"), "relu1", "Reloo"),
            ("operator of another case", lambda g: g["nodes"][1].update(op="relu"), "relu1"),
            ("an internal operator", lambda g: g["nodes"][1].update(op="Copy"), "relu1", "Copy"),
            ("too many inputs", lambda g: g["nodes"][1].update(inputs=["x", "x"]), "relu1"),
            ("no inputs", lambda g: g["nodes"][1].update(inputs=[]), "relu1"),
        ])

    def test_names(self):
        self.table([
            ("dangling input", lambda g: g["nodes"][1].update(inputs=["nowhere"]), "relu1", "nowhere"),
            ("dangling output", lambda g: g.update(outputs=["nowhere"]), "nowhere"),
            ("duplicate node", lambda g: g["nodes"][1].update(name="conv1"), "conv1"),
            ("node named as an input", lambda g: g["nodes"][1].update(name="x"), "x"),
            ("duplicate input", lambda g: g["inputs"].append(g["inputs"][0]), "x"),
        ])

    def test_cycles(self):
        def cycle(g):
            g["nodes"] += [node("a", "Relu", ["b"]), node("b", "Relu", ["a"])]
            g["outputs"] = ["b"]

        def own_input(g):
            g["nodes"].append(node("a", "Add", ["a", "x"]))
            g["outputs"] = ["a"]

        self.table([("two nodes", cycle, "a"), ("a node and itself", own_input, "a")])

    def test_convolutions(self):
        self.table([
            ("negative pads", conv_attr(pads=[-1, 0, 0, 0]), "conv1", "pads", "-1"),
            ("zero strides", conv_attr(strides=[0, 1]), "conv1", "strides", "0"),
            ("negative strides", conv_attr(strides=[1, -2]), "conv1", "strides", "-2"),
            ("zero dilations", conv_attr(dilations=[1, 0]), "conv1", "dilations", "0"),
            ("zero kernel", conv_attr(kernel_shape=[0, 3]), "conv1", "kernel_shape"),
            ("one kernel extent", conv_attr(kernel_shape=[3]), "conv1", "kernel_shape"),
            ("kernel wider than the image", conv_attr(kernel_shape=[11, 11]), "conv1"),
            ("no output channels", conv_attr(out_channels=0), "conv1", "out_channels"),
            ("group that does not divide", conv_attr(group=2), "conv1", "group", "2"),
            ("zero group", conv_attr(group=0), "conv1", "group"),
            ("bias that is a number", conv_attr(bias=1), "conv1", "bias"),
            ("no out_channels", lambda g: g["nodes"][0]["attrs"].pop("out_channels"), "conv1",
             "out_channels"),
        ])

    def test_overflow(self):
        big = 1 << 40
        self.table([
            ("image", lambda g: g["inputs"][0].update(shape=["N", 3, big, big]), "inputs[0]"),
            ("channels", conv_attr(out_channels=1 << 62), "conv1"),
            ("pads", conv_attr(pads=[1 << 62, 1 << 62, 0, 0]), "conv1"),
            ("kernel and dilation", conv_attr(kernel_shape=[1 << 33, 1 << 33],
                                              dilations=[1 << 33, 1 << 33]), "conv1"),
            ("negative extent", lambda g: g["inputs"][0].update(shape=["N", 3, -8, 8]), "-8"),
            ("zero extent", lambda g: g["inputs"][0].update(shape=["N", 0, 8, 8]), "0"),
            ("nine axes", lambda g: g["inputs"][0].update(shape=[1] * 9), "inputs[0]"),
            ("batch symbol in the middle", lambda g: g["inputs"][0].update(shape=[1, "N", 8, 8])),
        ])

    def test_shapes_that_do_not_fit(self):
        def add(g):
            g["nodes"].append(node("sum", "Add", ["conv1", "x"]))
            g["outputs"] = ["sum"]

        def concat(g):
            g["nodes"][2]["attrs"]["strides"] = [2, 2]

        def axis(g):
            g["nodes"][3]["attrs"]["axis"] = 4

        def pool(g):
            g["nodes"].append(node("pool", "MaxPool", ["x"], kernel_shape=[2, 2], pads=[2, 2, 2, 2]))
            g["outputs"] = ["pool"]

        def gemm(g):
            g["nodes"].append(node("fc", "Gemm", ["x"], out_features=2))
            g["outputs"] = ["fc"]

        self.table([("Add", add, "sum"), ("Concat", concat, "cat"), ("Concat's axis", axis, "cat"),
                    ("pads as wide as the window", pool, "pool"), ("Gemm of an image", gemm, "fc")])


if __name__ == "__main__":
    harness.main()
