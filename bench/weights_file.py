"""Reads a safetensors file into numpy arrays; needs no package but numpy."""
import json
import struct

import numpy

DTYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16}


def read(path):
    """{name: array}."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
            arrays[name] = values.reshape(entry["shape"]).copy()
    return arrays
