#!/usr/bin/env python3
"""How long `convsched import` takes for a model of half a gigabyte, and how much memory: VGG-16 with raw f32
initializers, its dense layers' weights stored as they are wanted (transB 1) and transposed (transB 0).

    bench/import_time.py [--command build/release/convsched] [--samples 9] [--work FOLDER] [--out FILE.json]

The model has just been written, so it is in the page cache; the time is that of the whole command, which writes the
weights and syncs them. Peak memory is the most that the process had resident, pages of the mapped file
included. Prints a table, writes a convsched.import-time/1 record.
Exit: 0 within the bar (5 s, 1.3 times the file, of the medians), 1 past it.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import struct
import subprocess
import sys
import tempfile
import time

import records

sys.path.append(str(records.ROOT / "tests" / "cli"))
import onnx_bytes as onnx  # of tests/cli/

SCHEMA = "convsched.import-time/1"
MOST_SECONDS, MOST_MEMORY = 5.0, 1.3
CHANNELS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)  # 0: a MaxPool
DENSE = (4096, 4096, 1000)


class Network:
    """Fields of a GraphProto: nodes, and initializers whose elements are written later."""

    def __init__(self):
        self.nodes, self.tensors, self.value = [], [], "x"

    def node(self, op, shapes, **attributes):
        """One node on the last value, with parameters of these shapes."""
        names = [f"p{len(self.tensors) + i}" for i in range(len(shapes))]
        self.tensors += zip(names, shapes)
        output = f"v{len(self.nodes)}"
        self.nodes.append(onnx.block(1, onnx.node(op, [self.value, *names], [output], **attributes)))
        self.value = output


def vgg16(transposed):
    network, channels = Network(), 3
    for wanted in CHANNELS:
        if wanted == 0:
            network.node("MaxPool", [], kernel_shape=[2, 2], strides=[2, 2])
            continue
        network.node("Conv", [(wanted, channels, 3, 3), (wanted,)], pads=[1, 1, 1, 1])
        network.node("Relu", [])
        channels = wanted
    network.node("Flatten", [])
    features = channels * 7 * 7
    for index, wanted in enumerate(DENSE):
        shape = (features, wanted) if transposed else (wanted, features)
        network.node("Gemm", [shape, (wanted,)], transB=0 if transposed else 1)
        if index < len(DENSE) - 1:
            network.node("Relu", [])
        features = wanted
    return network


def elements(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def write_model(path, transposed):
    """Piece by piece: a process of little memory starts the one that is measured."""
    network = vgg16(transposed)
    heads = []  # of each initializer, up to its elements
    for name, shape in network.tensors:
        count = 4 * elements(shape)
        inner = onnx.tensor(name, shape) + onnx.varint(9 << 3 | 2) + onnx.varint(count)
        heads.append((onnx.varint(5 << 3 | 2) + onnx.varint(len(inner) + count) + inner, count))
    body = b"".join(network.nodes) + onnx.block(2, "vgg16") + onnx.block(11, onnx.value("x", ["N", 3, 224, 224])) + \
        onnx.block(12, onnx.value(network.value, ["N", DENSE[-1]]))
    size = len(body) + sum(len(head) + count for head, count in heads)
    rng = random.Random(1)
    some = struct.pack("<65537f", *(rng.gauss(0, 0.01) for _ in range(65537)))
    with open(path, "wb") as file:
        file.write(onnx.integer(1, 8) + onnx.block(8, onnx.integer(2, 17)) + onnx.varint(7 << 3 | 2) + onnx.varint(size) + body)
        for head, count in heads:
            file.write(head)
            for begin in range(0, count, len(some)):
                file.write(some[:min(len(some), count - begin)])
    return os.path.getsize(path)


def import_once(command, model, out):
    """(seconds, most bytes resident)"""
    start = time.perf_counter()
    process = subprocess.Popen([command, "import", model, "-o", out])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} import {model}: exit {process.returncode}")
    return seconds, usage.ru_maxrss * 1024


def measure(options, transposed, work):
    model = str(work / "vgg16.onnx")
    size = write_model(model, transposed)
    found = [import_once(options.command, model, str(work / "out.json")) for _ in range(options.samples)]
    peaks = [peak for _, peak in found]
    return {"transB": 0 if transposed else 1, "bytes": size, "seconds": statistics([s for s, _ in found]),
            "peak_bytes": peaks, "peak_over_file": max(peaks) / size}


def statistics(samples):
    ordered = sorted(samples)
    return {"median": ordered[len(ordered) // 2], "least": ordered[0], "most": ordered[-1], "samples": samples}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default=str(records.ROOT / "build/release/convsched"))
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--work", help="a folder for files of 1.2 GB (default: a temporary one)")
    parser.add_argument("--out", help="write the record here")
    parser.add_argument("--commit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        found = [measure(options, transposed, pathlib.Path(work)) for transposed in (False, True)]
    print("| dense weights | file MB | seconds, median | least | most | peak MB | peak over file |\n|---|---|---|---|---|---|---|")
    for file in found:
        s = file["seconds"]
        print(f"| transB {file['transB']} | {file['bytes'] / 1e6:.0f} | {s['median']:.2f} | {s['least']:.2f} | {s['most']:.2f} "
              f"| {max(file['peak_bytes']) / 1e6:.0f} | {file['peak_over_file']:.2f} |")
    passed = all(f["seconds"]["median"] <= MOST_SECONDS and f["peak_over_file"] <= MOST_MEMORY for f in found)
    record = {"schema": SCHEMA, "model": "vgg16", "commit": records.commit(options.commit), "command": records.command_line(),
              "host": {"cpu": processor(), "cpus": os.cpu_count(), "kernel": platform.release()},
              "bar": {"seconds": MOST_SECONDS, "peak_over_file": MOST_MEMORY}, "files": found, "passed": passed}
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"bar: {MOST_SECONDS:g} s, {MOST_MEMORY:g} times the file: {'kept' if passed else 'MISSED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
