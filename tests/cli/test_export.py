"""Exporting ONNX: files, weights, what is written back when it is imported."""
import json

import harness
from harness import BAD_INPUT, FAILURE, USAGE, CommandTest


class Export(CommandTest):
    cold = True

    def back(self, path="out.onnx"):
        """(graph, parameters) that importing a file gives."""
        self.accepted(self.execute("import", path, "-o", "back.json"))
        return json.loads((self.folder / "back.json").read_text()), self.weights("back")

    def weights(self, name):
        return harness.read_safetensors(self.folder / f"{name}.safetensors")

    def test_the_same_graph_and_generated_weights(self):
        model = self.model()
        out, _ = self.accepted(self.execute("export", model, "--onnx", "out.onnx", "--seed", 3))
        self.assertEqual(out, "")
        graph, params = self.back()
        self.accepted(self.execute("generate-weights", model, "--seed", 3, "--output", "w.safetensors"))
        self.assertEqual(params, self.weights("w"))
        wanted = harness.graph()
        self.assertEqual([graph["name"], graph["outputs"]], [wanted["name"], wanted["outputs"]])
        self.assertEqual([(n["name"], n["op"], n["inputs"]) for n in graph["nodes"]],
                         [(n["name"], n["op"], n["inputs"]) for n in wanted["nodes"]])
        file = (self.folder / "out.onnx").read_bytes()
        for text in (b"convsched", b"conv1.weight", b"parameters generated from seed 3"):
            self.assertIn(text, file)

    def test_weights_that_are_given_and_those_of_the_graph(self):
        def named(graph):
            graph["weights"] = "own.safetensors"
        self.accepted(self.execute("generate-weights", self.model(), "--seed", 4, "--output", "own.safetensors"))
        self.accepted(self.execute("generate-weights", self.model(), "--seed", 5, "--output", "given.safetensors"))
        model = self.model(named)
        for weights, options in (("own", []), ("given", ["--weights", "given.safetensors"])):
            self.accepted(self.execute("export", model, "--onnx", "out.onnx", *options))
            self.assertEqual(self.back()[1], self.weights(weights))
        self.refused(self.execute("export", model, "--onnx", "own.safetensors"), USAGE, "would replace", "which is read")

    def test_an_imported_model_is_exported_again_as_it_was(self):
        self.accepted(self.execute("export", self.model(), "--onnx", "a.onnx"))
        self.accepted(self.execute("export", "a.onnx", "--onnx", "b.onnx"))
        self.assertEqual(self.back("a.onnx"), self.back("b.onnx"))

    def test_wrong_use(self):
        model = self.model()
        self.refused(self.execute("export", model), USAGE, "--onnx FILE is missing")
        self.refused(self.execute("export", model, "--onnx", "-"), USAGE, "./-")
        self.refused(self.execute("export", model, "--onnx", ""), USAGE, "wanted a name")
        self.refused(self.execute("export", model, "--onnx", model), USAGE, "which is read")
        self.accepted(self.execute("generate-weights", model, "--output", "w.safetensors"))
        self.refused(self.execute("export", model, "--weights", "w.safetensors", "--onnx", "w.safetensors"), USAGE,
                     "which is read")

    def test_a_place_that_cannot_be_written_is_told_before_the_model(self):
        bad = self.file("bad.json", b"no graph")
        self.refused(self.execute("export", bad, "--onnx", "nowhere/out.onnx"), FAILURE, "nowhere")
        self.refused(self.execute("export", bad, "--onnx", "out.onnx"), BAD_INPUT, "bad.json")
        self.assertFalse((self.folder / "out.onnx").exists())

    def test_weights_that_do_not_fit_leave_the_old_file(self):
        old = self.file("out.onnx", b"old")
        self.file("w.safetensors", harness.safetensors({"conv1.weight": (1,)}))
        self.refused(self.execute("export", self.model(), "--weights", "w.safetensors", "--onnx", old), BAD_INPUT,
                     "w.safetensors")
        self.assertEqual((self.folder / "out.onnx").read_bytes(), b"old")


if __name__ == "__main__":
    harness.main()
