"""Runs a convsched graph by JAX's operations, to be traced by jax.jit.

    net = JaxGraph(graph_json.load("models/googlenet.json"), state, layout="nhwc", dtype="f16")
    outputs = jax.jit(net)(net.params, net.given(inputs))      # list, in the order of the graph's outputs

Values of four dimensions are in the net's layout. Parameters are arguments, not constants: the
compiler may not fold them, so they lie as the layout's convolutions read them (filters OHWI with NHWC).
"""
import jax
import jax.numpy as jnp
import numpy
from jax import lax

import graph_json
from fold_norm import fold_batch_norm
from resize_weights import resize_weights

LAYOUTS = ("nchw", "nhwc")
# Letters of activations, of filters and, as a transposed convolution's filter is [in, out, R, S], of those.
LETTERS = {"nchw": ("NCHW", "OIHW", "IOHW"), "nhwc": ("NHWC", "OHWI", "IHWO")}
DTYPES = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16"}


def axes(layout, axis):
    """Where axis 0 … 3 of NCHW is in the layout."""
    return LETTERS[layout][0].index("NCHW"[axis])


def spread(layout, values, default):
    """A tuple in the layout's order from {NCHW axis: value}."""
    placed = [default] * 4
    for axis, value in values.items():
        placed[axes(layout, axis)] = value
    return tuple(placed)


def channelwise(net, vector, x):
    return vector.reshape([-1 if axis == axes(net.layout, 1) else 1 for axis in range(4)]) if x.ndim == 4 else vector


def single(x):
    """In float32, for sums: other systems accumulate halves so too. Fused, it moves no memory."""
    return x.astype(jnp.float32)


# ---- Operators: each takes (net, attributes, parameters, inputs) ----


def convolve(net, attrs, params, x, letters, filters, padding, **more):
    y = lax.conv_general_dilated(x, filters, padding=padding, rhs_dilation=attrs["dilations"],
                                 dimension_numbers=(LETTERS[net.layout][0], letters, LETTERS[net.layout][0]), **more)
    return y + channelwise(net, params["bias"], y) if "bias" in params else y


def conv(net, attrs, params, x):
    top, left, bottom, right = attrs["pads"]
    return convolve(net, attrs, params, x, LETTERS[net.layout][1], params["weight"], ((top, bottom), (left, right)),
                    window_strides=attrs["strides"], feature_group_count=attrs["group"])


def conv_transpose(net, attrs, params, x):
    """The convolution's gradient: of the input spread out, by the filter turned round. The turn is left
    to the compiler, which knows it as the gradient by that. Of several groups, one after the other."""
    top, left, bottom, right = attrs["pads"]
    letters = LETTERS[net.layout][2]
    turned = lax.rev(params["weight"], [letters.index("H"), letters.index("W")])
    reach = [attrs["dilations"][i] * (attrs["kernel_shape"][i] - 1) for i in range(2)]
    extra = attrs["output_padding"]
    padding = ((reach[0] - top, reach[0] - bottom + extra[0]), (reach[1] - left, reach[1] - right + extra[1]))
    group, channel = attrs["group"], axes(net.layout, 1)
    parts = [convolve(net, attrs, {}, part, letters, filters, padding, window_strides=(1, 1),
                      lhs_dilation=attrs["strides"])
             for part, filters in zip(jnp.split(x, group, channel), jnp.split(turned, group, letters.index("I")))]
    y = parts[0] if group == 1 else jnp.concatenate(parts, channel)
    return y + channelwise(net, params["bias"], y) if "bias" in params else y


def gemm(_, attrs, params, x):
    y = x @ params["weight"].T
    return y + params["bias"] if "bias" in params else y


def batch_norm(net, attrs, params, x):
    scale = single(params["weight"]) * lax.rsqrt(single(params["running_var"]) + attrs["epsilon"])
    shift = single(params["bias"]) - single(params["running_mean"]) * scale
    return (single(x) * channelwise(net, scale, x) + channelwise(net, shift, x)).astype(x.dtype)


def window(net, attrs, x):
    """(window, strides, padding, dilations) of lax.reduce_window, and the end padding that ceil_mode adds."""
    extents = [x.shape[axes(net.layout, 2 + i)] for i in range(2)]
    padding, more = {}, []
    for i in range(2):
        kernel, stride, dilation = (attrs[what][i] for what in ("kernel_shape", "strides", "dilations"))
        begin, end = attrs["pads"][i], attrs["pads"][2 + i]
        windows = graph_json.window_extent(extents[i], kernel, stride, dilation, begin, end, bool(attrs["ceil_mode"]))
        reach = (windows - 1) * stride + dilation * (kernel - 1) + 1
        more.append(max(0, reach - (extents[i] + begin + end)))
        padding[2 + i] = (begin, end + more[i])
    spatial = lambda what: spread(net.layout, {2: attrs[what][0], 3: attrs[what][1]}, 1)
    return (spatial("kernel_shape"), spatial("strides"), spread(net.layout, padding, (0, 0)), spatial("dilations"),
            extents, more)


def max_pool(net, attrs, _, x):
    shape, strides, padding, dilations, *_ = window(net, attrs, x)
    return lax.reduce_window(x, numpy.array(-numpy.inf, x.dtype), lax.max, shape, strides, padding,
                             window_dilation=dilations)


def divisors(attrs, extents, more):
    """How many elements each window averages: padding counts if asked for, what ceil_mode adds never."""
    counts = []
    for i in range(2):
        begin, end = attrs["pads"][i], attrs["pads"][2 + i]
        inside = numpy.zeros(begin + extents[i] + end + more[i])
        inside[:begin + extents[i] + end] = 1 if attrs["count_include_pad"] else 0
        inside[begin:begin + extents[i]] = 1
        kernel, stride, dilation = (attrs[what][i] for what in ("kernel_shape", "strides", "dilations"))
        last = len(inside) - dilation * (kernel - 1)
        counts.append([inside[at:at + dilation * (kernel - 1) + 1:dilation].sum() for at in range(0, last, stride)])
    return numpy.outer(*counts)


def average_pool(net, attrs, _, x):
    shape, strides, padding, dilations, extents, more = window(net, attrs, x)
    sums = lax.reduce_window(single(x), numpy.float32(0), lax.add, shape, strides, padding, window_dilation=dilations)
    counts = divisors(attrs, extents, more)
    counts = counts.reshape(spread(net.layout, {2: counts.shape[0], 3: counts.shape[1]}, 1))
    return (sums * (1 / counts).astype(numpy.float32)).astype(x.dtype)


def global_average_pool(net, attrs, _, x):
    return jnp.mean(single(x), (axes(net.layout, 2), axes(net.layout, 3)), keepdims=True).astype(x.dtype)


def lrn(net, attrs, _, x):
    """ONNX sums the squares of channels c − ⌊(size − 1) / 2⌋ … c + ⌈(size − 1) / 2⌉."""
    size, exact = attrs["size"], single(x)
    before = (size - 1) // 2
    total = lax.reduce_window(exact * exact, numpy.float32(0), lax.add, spread(net.layout, {1: size}, 1), (1,) * 4,
                              spread(net.layout, {1: (before, size - 1 - before)}, (0, 0)))
    return (exact / (attrs["bias"] + attrs["alpha"] / size * total) ** attrs["beta"]).astype(x.dtype)


def axis_of(net, axis, x):
    """A node's axis (of NCHW) among those of the value."""
    return axes(net.layout, axis % 4) if x.ndim == 4 else axis % x.ndim


def flatten(net, attrs, _, x):
    if net.layout == "nhwc" and x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)  # moves nothing where there is one pixel
    axis = attrs["axis"] % x.ndim
    return x.reshape(int(numpy.prod(x.shape[:axis])), -1)


def pad(net, attrs, _, x):
    half = x.ndim
    amounts = {axis: (attrs["pads"][axis], attrs["pads"][half + axis]) for axis in range(half)}
    placed = spread(net.layout, amounts, (0, 0)) if half == 4 else tuple(amounts.values())
    if attrs["mode"] == "constant":  # negative pads cut
        return lax.pad(x, jnp.asarray(attrs["value"], x.dtype), [(*ends, 0) for ends in placed])
    return jnp.pad(x, placed, attrs["mode"])


def resize(net, attrs, _, x):
    """Along H, then along W, each a product with a matrix of weights."""
    exact = single(x)
    for axis in (0, 1):
        at = axes(net.layout, 2 + axis)
        extent, scales = x.shape[at], attrs["scales"]
        matrix = resize_weights(attrs, axis, extent, scales[axis] if scales else attrs["sizes"][axis] / extent)
        matrix, outside = matrix[:, :-1].astype(numpy.float32), matrix[:, -1] * attrs["extrapolation_value"]
        exact = jnp.moveaxis(jnp.moveaxis(exact, at, -1) @ matrix.T + outside.astype(numpy.float32), -1, at)
    return exact.astype(x.dtype)


def chain(function):
    """Of inputs, or of one and a constant number."""
    def apply(net, attrs, params, first, *others):
        if not others and attrs.get("operand"):
            if attrs["operand"] != [1]:
                raise NotImplementedError(f"operand of shape {attrs['operand']}, wanted one number")
            others = (params["weight"],)
        for other in others:
            first = function(first, other)
        return first
    return apply


def softmax(net, attrs, _, x):
    return jax.nn.softmax(single(x), axis_of(net, attrs["axis"], x)).astype(x.dtype)


OPERATORS = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Gemm": gemm,
    "BatchNormalization": batch_norm,
    "Relu": lambda n, a, p, x: jnp.maximum(x, 0),
    "LeakyRelu": lambda n, a, p, x: jnp.where(x > 0, x, x * a["alpha"]),
    "Clip": lambda n, a, p, x: jnp.clip(x, a["min"], a["max"]),
    "Sigmoid": lambda n, a, p, x: jax.nn.sigmoid(x),
    "Tanh": lambda n, a, p, x: jnp.tanh(x),
    "Add": chain(jnp.add),
    "Mul": chain(jnp.multiply),
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "LRN": lrn,
    "Softmax": softmax,
    "Concat": lambda n, a, p, *inputs: jnp.concatenate(inputs, axis_of(n, a["axis"], inputs[0])),
    "Flatten": flatten,
    "Pad": pad,
    "Resize": resize,
    "Identity": lambda n, a, p, x: x,
    "Dropout": lambda n, a, p, x: x,
}


# ---- The net ----


class JaxGraph:
    """`params`: the parameters on the device, by node and name. A call is traced, or runs op by op."""

    def __init__(self, graph, state, layout="nchw", dtype="f32", fold=True):
        if fold:
            graph, state = fold_batch_norm(graph, state)
        self.graph, self.layout = graph, layout
        self.dtype = numpy.dtype(jnp.dtype(DTYPES[dtype]))
        operators = {node.name: node.op for node in graph.nodes}
        self.params = {node.name: {} for node in graph.nodes}
        for name in graph_json.parameter_shapes(graph):
            node, _, what = name.rpartition(".")
            array = numpy.asarray(state[name])
            if array.ndim == 4:
                array = self.arrange(array, *(("IOHW", 2) if operators[node] == "ConvTranspose" else ("OIHW", 1)))
            self.params[node][what] = jnp.asarray(array.astype(self.dtype))

    def arrange(self, array, letters="NCHW", which=0):
        return numpy.ascontiguousarray(array.transpose([letters.index(c) for c in LETTERS[self.layout][which]]))

    def given(self, inputs):
        """NumPy inputs (NCHW) on the device, in the net's dtype and layout."""
        return [jnp.asarray((self.arrange(x) if x.ndim == 4 else x).astype(self.dtype)) for x in inputs]

    def taken(self, outputs):
        """Outputs as NumPy arrays, float32, NCHW."""
        arrays = [numpy.asarray(y.astype(jnp.float32)) for y in outputs]
        return [y.transpose(0, 3, 1, 2) if self.layout == "nhwc" and y.ndim == 4 else y for y in arrays]

    def __call__(self, params, inputs):
        values = dict(zip(self.graph.inputs, inputs, strict=True))
        for node in self.graph.nodes:
            given = [values[name] for name in node.inputs]
            values[node.name] = OPERATORS[node.op](self, node.attrs, params[node.name], *given)
        return [values[name] for name in self.graph.outputs]
