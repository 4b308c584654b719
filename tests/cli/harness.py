"""Runs the built command in a folder of its own and checks exit codes, messages and files.

Each test file is run as `python3 test_<group>.py PATH_TO_CONVSCHED`. Standard library only.
"""
import copy
import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMMAND = ""
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")

# Under a sanitizer: without what is long and tells nothing new there.
SHORT = bool(os.environ.get("CS_TEST_SHORT"))

# Exit codes of the command (design: "Commands").
OK, WRONG, USAGE, BAD_INPUT, FAILURE, HUNG_UP, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 129, 130, 143

CONV_ATTRS = {"out_channels": 4, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "bias": True}
TINY = {
    "schema": "convsched.graph/1",
    "name": "tiny",
    "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "f32"}],
    "nodes": [
        {"name": "conv1", "op": "Conv", "inputs": ["x"], "attrs": dict(CONV_ATTRS)},
        {"name": "relu1", "op": "Relu", "inputs": ["conv1"]},
        {"name": "conv2", "op": "Conv", "inputs": ["x"],
         "attrs": {"out_channels": 4, "kernel_shape": [1, 1], "bias": True}},
        {"name": "cat", "op": "Concat", "inputs": ["relu1", "conv2"], "attrs": {"axis": 1}},
    ],
    "outputs": ["cat"],
}
TINY_OUTPUT = (1, 8, 8, 8)
TINY_PARAMETERS = {"conv1.weight": (4, 3, 3, 3), "conv1.bias": (4,),
                   "conv2.weight": (4, 3, 1, 1), "conv2.bias": (4,)}


def graph(change=None):
    """The tiny graph, changed in place by `change`."""
    result = copy.deepcopy(TINY)
    if change:
        change(result)
    return result


def elements(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def npy(shape, values, descr="<f4", code="f"):
    """Bytes of a .npy file, version 1.0, C order."""
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}{code}", *values))


def read_npy(path):
    """Shape and values of an f32 .npy file, version 1.0, C order."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + length].decode()
    assert "<f4" in header and "'fortran_order': False" in header, header
    shape = tuple(int(n) for n in re.search(r"'shape': \(([^)]*)\)", header)[1].split(",") if n.strip())
    return shape, struct.unpack(f"<{elements(shape)}f", data[10 + length:])


def read_safetensors(path):
    """{name: (shape, values)} of a file of f32."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        found[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return found


def safetensors(tensors):
    """Bytes of a safetensors file of f32 tensors with small varied values: {name: shape}."""
    header, data = {}, b""
    for name, shape in tensors.items():
        count = elements(shape)
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *((i % 7 - 3) / 8 for i in range(count)))
    return with_header(header, data)


def with_header(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@functools.lru_cache
def warm_cache():
    """A cache folder that holds the measurements of the tiny graph: made once a test file."""
    folder = tempfile.TemporaryDirectory(prefix="convsched-cli-warm-")
    model = pathlib.Path(folder.name) / "tiny.json"
    model.write_text(json.dumps(TINY))
    subprocess.run([COMMAND, "run", str(model), "--device", "cpu", "--quiet"], check=True,
                   env=dict(os.environ, XDG_CACHE_HOME=folder.name), stdout=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL, timeout=300)
    model.unlink()
    return folder


class CommandTest(unittest.TestCase):
    """A temporary folder, a cache of its own (warm unless the class says cold), and the command."""
    cold = False

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="convsched-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        if not self.cold:
            shutil.copytree(warm_cache().name, self.folder / "cache")

    def file(self, name, content):
        """Writes a file of the test's folder; returns its path."""
        path = self.folder / name
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def model(self, change=None):
        return self.file("tiny.json", graph(change))

    def start(self, *args, **more):
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.Popen([COMMAND, *map(str, args)], env=self.env, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)

    def execute(self, *args, timeout=120, **more):
        """Runs the command; returns (exit code, stdout, stderr)."""
        process = self.start(*args, **more)
        out, err = process.communicate(timeout=timeout)
        self.assertIsNone(SANITIZER.search(err), err)
        self.assertGreaterEqual(process.returncode, 0, f"killed by signal: {err}")
        return process.returncode, out, err

    def run_tiny(self, *args, model=None, **more):
        return self.execute("run", model or self.model(), "--device", "cpu", *args, **more)

    def accepted(self, result):
        code, out, err = result
        self.assertEqual(code, OK, err)
        return out, err

    def refused(self, result, code, *fragments):
        """One message with every fragment, the exit code, and nothing on stdout."""
        found, out, err = result
        self.assertEqual(found, code, f"{out}\n{err}")
        self.assertEqual(out or "", "")
        lines = [line for line in err.splitlines() if line.strip()]
        self.assertTrue(lines, "no message")
        limit = 3 if code == USAGE else 1
        self.assertLessEqual(len(lines), limit, err)
        for fragment in fragments:
            self.assertIn(str(fragment), err)
        return err


def find_tool(test, name, package):
    """Its path; where it is missing the test is skipped, or fails where CS_CHECKS_REQUIRED says so."""
    path = shutil.which(name)
    if not path and os.environ.get("CS_CHECKS_REQUIRED") == "1":
        test.fail(f"{name} is missing ({package})")
    if not path:
        test.skipTest(f"{name} is missing ({package})")
    return path


def main():
    global COMMAND
    if len(sys.argv) < 2:
        sys.exit("usage: test_<group>.py PATH_TO_CONVSCHED [unittest options]")
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
