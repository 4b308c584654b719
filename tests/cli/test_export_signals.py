"""Files that are being written when a signal ends the process, or a file that is read is cut off."""
import array
import fcntl
import os
import signal
import termios
import time

import harness
from harness import FAILURE, INTERRUPTED, TERMINATED, USAGE, CommandTest


class Signals(CommandTest):
    cold = True

    def wide(self, channels):
        """A graph of one 1×1 convolution of channels² parameters."""
        def change(graph):
            graph["inputs"][0]["shape"][1] = channels
            graph["nodes"] = [graph["nodes"][2]]
            graph["nodes"][0]["attrs"]["out_channels"] = channels
            graph["outputs"] = ["conv2"]
        return self.model(change)

    def wait_until_written(self, pipe, process):
        """The command has begun to write. It cannot end: a pipe holds less than there is to write."""
        held = array.array("i", [0])
        for _ in range(20000):
            fcntl.ioctl(pipe, termios.FIONREAD, held)
            if held[0] > 0:
                return
            self.assertIsNone(process.poll(), "ended before it wrote")
            time.sleep(0.001)
        self.fail("writes nothing")

    def stopped(self, sent, written, *args):
        """Exit code after a signal while weights are written to `written`, which nobody reads."""
        path = self.folder / written
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        process = self.start(*args)
        try:
            self.wait_until_written(pipe, process)
            process.send_signal(sent)
            _, err = process.communicate(timeout=10)
        finally:
            process.kill()
            process.wait()
            os.close(pipe)
            path.unlink()
        self.assertIn("interrupted", err)
        return process.returncode

    def test_commands_that_write_weights(self):
        model = self.wide(200)
        self.accepted(self.execute("export", model, "--onnx", "m.onnx"))
        for sent, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
            for args in (("export", model, "--onnx", "pipe"), ("generate-weights", model, "--output", "pipe"),
                         ("import", "m.onnx", "-o", "a.json")):
                with self.subTest(args[0], signal=sent.name):
                    written = "a.safetensors" if args[0] == "import" else "pipe"
                    self.assertEqual(self.stopped(sent, written, *args), code)

    def files(self):
        """(path, size) of the folder's files, but for those that go while they are looked at."""
        found = []
        for file in self.folder.iterdir():
            try:
                found.append((file, file.stat().st_size))
            except FileNotFoundError:
                pass
        return found

    def begin(self, *args):
        """The command once its temporary file is there."""
        process = self.start(*args)
        for _ in range(20000):
            # A file that is empty may be the look whether one can be made.
            if any(".tmp." in file.name and size > 0 for file, size in self.files()):
                return process
            self.assertIsNone(process.poll(), "ended before it could be interrupted")
            time.sleep(0.001)
        self.fail("writes nothing")

    def test_nothing_is_left(self):
        model = self.wide(6000)
        before = sorted(os.listdir(self.folder))
        process = self.begin("export", model, "--onnx", "out.onnx")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, TERMINATED, err)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_what_a_killed_process_left_goes_with_the_next_write(self):
        model = self.wide(6000)
        before = sorted(os.listdir(self.folder))
        process = self.begin("export", model, "--onnx", "out.onnx")
        process.kill()
        process.communicate(timeout=60)
        self.assertNotEqual(sorted(os.listdir(self.folder)), before)
        self.accepted(self.execute("export", self.model(), "--onnx", "out.onnx"))
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(before + ["out.onnx"]))

    def test_a_file_that_is_cut_off(self):
        self.accepted(self.execute("export", self.wide(6000), "--onnx", "in.onnx"))
        before = sorted(os.listdir(self.folder))
        process = self.begin("import", "in.onnx", "-o", "out.json")
        process.send_signal(signal.SIGSTOP)
        os.truncate(self.folder / "in.onnx", 4096)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, FAILURE, err)
        self.assertIn("in.onnx: found its end", err)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_devices_have_no_place_for_weights(self):
        self.accepted(self.execute("export", self.model(), "--onnx", "m.onnx"))
        os.mkfifo(self.folder / "pipe")
        for path in ("/dev/null", "/dev/full", "pipe"):
            with self.subTest(path):
                self.refused(self.execute("import", "m.onnx", "-o", path), USAGE, path, "device or a pipe")
                self.assertFalse(os.path.exists(path + ".safetensors"))


if __name__ == "__main__":
    harness.main()
