"""A build without the ONNX importer says what is missing."""
import harness
from harness import BAD_INPUT, CommandTest


class NoImport(CommandTest):
    cold = True

    def test_says_what_to_install(self):
        model = self.file("m.onnx", b"")
        for args in (["import", model, "-o", "m.json"], ["import", model, "--check"], ["run", model],
                     ["export", self.model(), "--onnx", "out.onnx"]):
            with self.subTest(args[0]):
                self.refused(self.execute(*args), BAD_INPUT, "libonnx-dev", "protobuf-c-compiler")


if __name__ == "__main__":
    harness.main()
