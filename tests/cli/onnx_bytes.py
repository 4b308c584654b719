"""ONNX models as bytes, by hand: just enough of protobuf to write good and bad files with the standard
library alone. A message is made of fields, in the order given."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 3, 6, 7, 9, 10, 11, 16
WHOLE = {UINT8: "B", INT8: "b", INT32: "i", INT64: "q", BOOL: "?"}  # as struct has them


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def integer(number, value):
    return varint(number << 3) + varint(value)


def block(number, data):
    """A field of bytes: a string, a message or a packed list."""
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def real(number, value):
    return varint(number << 3 | 5) + struct.pack("<f", value)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def tensor(name, dims, data=None, dtype=FLOAT, more=b""):
    """data: bytes of raw_data, a list of numbers to be such, or None (the elements are in `more`)."""
    if isinstance(data, (list, tuple)):
        data = struct.pack(f"<{len(data)}{WHOLE[dtype]}", *data) if dtype in WHOLE else floats(data)
    return (b"".join(integer(1, d) for d in dims) + integer(2, dtype) + block(8, name) +
            (b"" if data is None else block(9, data)) + more)


def external(location, **keys):
    """Fields of a tensor whose data is in another file."""
    entries = {"location": location, **{k: str(v) for k, v in keys.items()}}
    return b"".join(block(13, block(1, k) + block(2, v)) for k, v in entries.items()) + integer(14, 1)


def attribute(name, value):
    if isinstance(value, float):
        body = real(2, value) + integer(20, 1)
    elif isinstance(value, int):
        body = integer(3, value) + integer(20, 2)
    elif isinstance(value, str):
        body = block(4, value) + integer(20, 3)
    elif isinstance(value, bytes):
        body = block(5, value) + integer(20, 4)
    else:
        body = b"".join(integer(8, v) for v in value) + integer(20, 7)
    return block(1, name) + body


def node(op, inputs, outputs, name="", domain="", **attributes):
    return (b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs) +
            (block(3, name) if name else b"") + block(4, op) + (block(7, domain) if domain else b"") +
            b"".join(block(5, attribute(k, v)) for k, v in attributes.items()))


def value(name, dims, dtype=FLOAT):
    """A dimension that is a text is symbolic."""
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else integer(1, d)) for d in dims)
    return block(1, name) + block(2, block(1, integer(1, dtype) + block(2, shape)))


def graph(nodes, inputs, outputs, initializers=(), told=()):
    return (b"".join(block(1, n) for n in nodes) + block(2, "g") +
            b"".join(block(5, t) for t in initializers) + b"".join(block(11, i) for i in inputs) +
            b"".join(block(12, o) for o in outputs) + b"".join(block(13, v) for v in told))


def model(body, opset=17, ir=8, more=b""):
    return integer(1, ir) + block(2, "hand") + block(7, body) + block(8, integer(2, opset)) + more
