"""Small graphs of each model family for tools/make_goldens.py. Extents are odd and channels few, so
that every branch of the semantics shows in a few hundred bytes."""

from graph_builder import Builder, pair


class SmallBuilder(Builder):
    """Builder whose windows take pads {top, left, bottom, right} and the rarer attributes."""

    def window(self, name, op, x, channels, kernel, stride, pads, dilation, **attrs):
        pads = pads if isinstance(pads, (tuple, list)) else [pads] * 4
        return self.node(name, op, [x], channels, kernel_shape=pair(kernel), strides=pair(stride),
                         pads=list(pads), dilations=pair(dilation), **attrs)

    def conv(self, name, x, out, kernel, stride=1, pads=0, dilation=1, group=1, bias=True):
        return self.window(name, "Conv", x, out, kernel, stride, pads, dilation, out_channels=out,
                           group=group, bias=bias)

    def conv_transpose(self, name, x, out, kernel, stride=1, pads=0, dilation=1, group=1,
                       output_padding=0, bias=False):
        return self.window(name, "ConvTranspose", x, out, kernel, stride, pads, dilation,
                           out_channels=out, group=group, bias=bias,
                           output_padding=pair(output_padding))

    def max_pool(self, name, x, kernel, stride, pads=0, dilation=1, ceil=False):
        return self.window(name, "MaxPool", x, self.channels[x], kernel, stride, pads, dilation,
                           ceil_mode=ceil)

    def average_pool(self, name, x, kernel, stride, pads=0, ceil=False, include_pad=False):
        return self.window(name, "AveragePool", x, self.channels[x], kernel, stride, pads, 1,
                           ceil_mode=ceil, count_include_pad=include_pad)

    def conv_relu(self, name, *args, **kwargs):
        return self.relu(name + "_relu", self.conv(name, *args, **kwargs))

    def conv_norm_relu(self, name, *args, **kwargs):
        y = self.norm(name + ".bn", self.conv(name, *args, bias=False, **kwargs), 0.001)
        return self.relu(name + ".relu", y)

    def finish(self, output):
        return self.text(output, self.parameters)


def inception_lrn():
    """GoogLeNet's stem and first module: LRN, 5×5 branch, pooling rounded up."""
    b = SmallBuilder("inception_lrn", "input", ["N", 3, 19, 17])
    x = b.unary("norm", "LRN", b.conv_relu("stem", "input", 8, 3, 2, 1), size=5, alpha=0.1,
                beta=0.75, bias=1.0)
    x = b.max_pool("pool", x, 3, 2, ceil=True)
    one = b.conv_relu("1x1", x, 4, 1)
    three = b.conv_relu("3x3", b.conv_relu("3x3_reduce", x, 6, 1), 8, 3, 1, 1)
    five = b.conv_relu("5x5", b.conv_relu("5x5_reduce", x, 3, 1), 5, 5, 1, 2)
    pool = b.conv_relu("pool_proj", b.max_pool("module_pool", x, 3, 1, 1, ceil=True), 4, 1)
    return b.finish(b.concat("output", [one, three, five, pool]))


def inception_bn():
    """torchvision's GoogLeNet: BatchNorm, a 2×2 pool rounded up, global pooling, classifier."""
    b = SmallBuilder("inception_bn", "input", ["N", 3, 9, 11])
    x = b.max_pool("pool", b.conv_norm_relu("stem", "input", 6, 3, 1, 1), 2, 2, ceil=True)
    one = b.conv_norm_relu("branch1", x, 4, 1)
    two = b.conv_norm_relu("branch2.1", b.conv_norm_relu("branch2.0", x, 4, 1), 6, 3, 1, 1)
    three = b.conv_norm_relu("branch3.1", b.max_pool("branch3.0", x, 3, 1, 1, ceil=True), 4, 1)
    x = b.unary("global", "GlobalAveragePool", b.concat("module", [one, two, three]))
    return b.finish(b.gemm("fc", b.flatten("flatten", x), 10))


def inception_factorised():
    """Inception v3: 1×7 and 7×1 convolutions, nested concats, averages that count padding."""
    b = SmallBuilder("inception_factorised", "input", ["N", 5, 8, 9])
    row, column = ((1, 7), 1, (0, 3, 0, 3)), ((7, 1), 1, (3, 0, 3, 0))
    x = b.conv_norm_relu("7x7_1", "input", 4, 1)
    x = b.conv_norm_relu("7x7_3", b.conv_norm_relu("7x7_2", x, 4, *row), 6, *column)
    split = b.concat("split", [b.conv_norm_relu("split_a", x, 3, (1, 3), 1, (0, 1, 0, 1)),
                               b.conv_norm_relu("split_b", x, 3, (3, 1), 1, (1, 0, 1, 0))])
    pool = b.average_pool("avg_pool", "input", 3, 1, 1, include_pad=True)
    return b.finish(b.concat("output", [x, split, b.conv_norm_relu("branch_pool", pool, 4, 1)]))


def residual_bottleneck():
    """ResNet: a bottleneck with a strided projection, then one with the identity."""
    b = SmallBuilder("residual_bottleneck", "input", ["N", 6, 9, 7])

    def bottleneck(p, x, stride, project):
        y = b.conv_norm_relu(p + "1", x, 3, 1)
        y = b.conv_norm_relu(p + "2", y, 3, 3, stride, 1)
        y = b.norm(p + "bn3", b.conv(p + "3", y, 12, 1, bias=False))
        if project:
            x = b.norm(p + "bnp", b.conv(p + "p", x, 12, 1, stride, bias=False))
        return b.relu(p + "relu", b.node(p + "add", "Add", [y, x], 12))

    return b.finish(bottleneck("b.", bottleneck("a.", "input", 2, True), 1, False))


def fire():
    """SqueezeNet: two fire modules, a convolution as classifier."""
    b = SmallBuilder("fire", "input", ["N", 3, 14, 13])
    x = b.max_pool("pool", b.conv_relu("stem", "input", 8, 3, 2), 3, 2, ceil=True)
    for p, squeeze, expand in (("fire1.", 3, 5), ("fire2.", 4, 6)):
        s = b.conv_relu(p + "squeeze", x, squeeze, 1)
        x = b.concat(p + "out", [b.conv_relu(p + "e1", s, expand, 1),
                                 b.conv_relu(p + "e3", s, expand, 3, 1, 1)])
    x = b.conv_relu("classifier", b.unary("dropout", "Dropout", x), 7, 1)
    return b.finish(b.flatten("flatten", b.unary("global", "GlobalAveragePool", x)))


def dense_block():
    """DenseNet: pre-activation layers over growing concats, then a transition."""
    b = SmallBuilder("dense_block", "input", ["N", 6, 7, 8])
    features = ["input"]
    for i in (1, 2, 3):
        p = f"layer{i}."
        x = features[0] if i == 1 else b.concat(p + "concat", features)
        x = b.conv(p + "conv1", b.relu(p + "relu1", b.norm(p + "norm1", x)), 8, 1, bias=False)
        x = b.relu(p + "relu2", b.norm(p + "norm2", x))
        features.append(b.conv(p + "conv2", x, 4, 3, 1, 1, bias=False))
    x = b.norm("transition.norm", b.concat("block", features))
    x = b.conv("transition.conv", b.relu("transition.relu", x), 9, 1, bias=False)
    return b.finish(b.average_pool("transition.pool", x, 2, 2))


def dcgan_head():
    """DCGAN: latent vector to image."""
    b = SmallBuilder("dcgan_head", "input", ["N", 10, 1, 1])
    x = b.conv_transpose("main.0", "input", 12, 4)
    x = b.relu("main.2", b.norm("main.1", x))
    x = b.conv_transpose("main.3", x, 6, 4, 2, 1)
    x = b.relu("main.5", b.norm("main.4", x))
    return b.finish(b.unary("main.7", "Tanh", b.conv_transpose("main.6", x, 3, 4, 2, 1)))


def transposed_variants():
    """Transposed convolutions: output_padding, groups, dilation, uneven pads, bias."""
    b = SmallBuilder("transposed_variants", "input", ["N", 4, 4, 5])
    y = [b.conv_transpose("output_padding", "input", 3, 3, 2, 1, output_padding=1, bias=True),
         b.conv_transpose("one_sided", "input", 3, 3, 2, 0, output_padding=(1, 0)),
         b.conv_transpose("groups", "input", 6, 3, 1, 1, group=2, bias=True),
         b.conv_transpose("dilated", "input", 2, (2, 3), 1, 1, dilation=2),
         b.conv_transpose("uneven", "input", 3, 4, 3, (1, 0, 2, 3), bias=True),
         b.conv_transpose("gaps", "input", 2, 1, 2, 0, output_padding=1, bias=True)]
    return b.finish(b.concat("output", [b.flatten("flat_" + x, x) for x in y]))


def conv_variants():
    """Convolutions: groups, depthwise, dilation, uneven pads, big strides, kernel over all."""
    b = SmallBuilder("conv_variants", "input", ["N", 6, 10, 9])
    y = [b.conv("groups", "input", 9, 3, 1, 1, group=3),
         b.conv("depthwise", "input", 6, (3, 5), 1, (1, 2, 1, 2), group=6, bias=False),
         b.conv("multiplier", "input", 12, 3, 2, 0, group=6),
         b.conv("dilated", "input", 4, 3, 1, 2, dilation=(2, 3)),
         b.conv("uneven", "input", 4, (4, 2), (1, 2), (2, 0, 1, 3)),
         b.conv("sparse", "input", 4, 1, 4, bias=False),
         b.conv("whole", "input", 4, (10, 9))]
    return b.finish(b.concat("output", [b.flatten("flat_" + x, x) for x in y]))


def pools():
    """Pooling: uneven pads, rounding up with a last window that would start in the padding,
    averages with and without padding, dilation."""
    b = SmallBuilder("pools", "input", ["N", 3, 8, 7])
    y = [b.max_pool("max_uneven", "input", 3, 2, (0, 1, 2, 0)),
         b.max_pool("max_ceil", "input", 2, 3, 1, ceil=True),
         b.max_pool("max_ceil_uneven", "input", 3, 2, (0, 1, 1, 1), ceil=True),
         b.max_pool("max_dilated", "input", (2, 3), 1, (1, 1, 1, 1), dilation=2),
         b.average_pool("avg", "input", 3, 2, 1),
         b.average_pool("avg_include", "input", 3, 2, 1, include_pad=True),
         b.average_pool("avg_uneven", "input", (3, 2), 2, (1, 0, 0, 1)),
         b.average_pool("avg_uneven_include", "input", (3, 2), 2, (1, 0, 0, 1), include_pad=True),
         b.average_pool("avg_ceil", "input", 3, 2, 1, ceil=True),
         b.average_pool("avg_ceil_include", "input", 3, 2, 1, ceil=True, include_pad=True),
         b.average_pool("avg_ceil_drop", "input", 2, 3, 1, ceil=True, include_pad=True),
         b.unary("global", "GlobalAveragePool", "input")]
    return b.finish(b.concat("output", [b.flatten("flat_" + x, x) for x in y]))


def normalisations():
    """LRN of odd sizes, one over all channels; BatchNormalization alone; Softmax by channel."""
    b = SmallBuilder("normalisations", "input", ["N", 7, 3, 4])

    def lrn(name, size, alpha, beta, bias):
        return b.unary(name, "LRN", "input", size=size, alpha=alpha, beta=beta, bias=bias)

    y = [lrn("lrn3", 3, 0.3, 0.75, 1.0), lrn("lrn15", 15, 1.0, 1.0, 2.0),
         b.norm("norm", "input", 0.01), b.unary("softmax", "Softmax", "input", axis=1)]
    return b.finish(b.concat("output", y))


def lrn_even():
    """LRN of an even size: one channel more behind than before, as ONNX has it."""
    b = SmallBuilder("lrn_even", "input", ["N", 7, 3, 4])
    return b.finish(b.unary("lrn4", "LRN", "input", size=4, alpha=0.5, beta=0.5, bias=2.0))


def elementwise():
    """Activations, sums and products, padding, a classifier with Softmax."""
    b = SmallBuilder("elementwise", "input", ["N", 4, 5, 6])
    x = b.conv("conv", "input", 4, 3, 1, 1)
    leaky = b.unary("leaky", "LeakyRelu", x, alpha=0.2)
    clip = b.unary("clip", "Clip", x, min=-0.5, max=1.25)
    gate = b.node("gate", "Mul", [b.unary("sigmoid", "Sigmoid", x), b.unary("tanh", "Tanh", x)], 4)
    x = b.node("sum", "Add", [b.node("sum0", "Add", [leaky, clip], 4), gate], 4)
    x = b.unary("pad", "Pad", b.unary("same", "Identity", x),
                pads=[0, 0, 1, 2, 0, 0, 0, 3], value=0.5)
    x = b.conv("last", x, 3, 3, 2)
    b.channels[b.flatten("flatten", x)] = 3 * 2 * 5
    return b.finish(b.unary("softmax", "Softmax", b.gemm("fc", "flatten", 9), axis=1))


def movements():
    """What moves elements: parts of the channels, shuffled channels, blocks of pixels, padding by reflection,
    resized images, planes read the other way round."""
    b = SmallBuilder("movements", "input", ["N", 8, 6, 5])

    def slice_(name, x, channels, **attrs):
        b.channels[b.unary(name, "Slice", x, **attrs)] = channels
        return name

    def resize(name, x, **attrs):
        return b.unary(name, "Resize", x, **attrs)

    left = slice_("left", "input", 4, starts=[0], ends=[4], axes=[1])
    right = b.conv("conv", slice_("right", "input", 4, starts=[4], ends=[8], axes=[1]), 4, 3, 1, 1)
    x = b.concat("cat", [left, right])
    x = b.unary("split", "Reshape", x, shape=["N", 2, 4, 30])
    x = b.unary("turn", "Transpose", x, perm=[0, 2, 1, 3])
    x = b.unary("shuffle", "Reshape", x, shape=["N", 8, 6, 5])
    b.channels[x] = 8
    b.channels[b.unary("space", "Transpose", x, perm=[0, 3, 4, 1, 5, 2], input_shape=["N", 2, 2, 2, 6, 5],
                       output_shape=["N", 2, 12, 10])] = 2
    back = slice_("back", "space", 2, starts=[-1, 0], ends=[-13, 10], axes=[2, 3], steps=[-2, 3])
    padded = b.unary("padded", "Pad", x, pads=[0, 0, 2, 3, 0, 0, 1, -1], mode="reflect")
    y = [b.unary("tokens", "Transpose", padded, perm=[0, 2, 3, 1], output_shape=["N", 63, 8]), back,
         resize("nearest", x, sizes=[9, 4]),
         resize("linear", "space", sizes=[7, 13], mode="linear"),
         resize("corners", x, sizes=[4, 8], mode="linear", coordinate_transformation_mode="align_corners"),
         resize("cubic", x, sizes=[8, 3], mode="cubic", coordinate_transformation_mode="asymmetric",
                exclude_outside=True)]
    return b.finish(b.concat("output", [b.flatten("flat_" + name, name) for name in y]))


def attention():
    """Attention of pixels to each other, three heads beside one another; then constants for each head, and in front."""
    b = SmallBuilder("attention", "input", ["N", 12, 5, 4])
    b.conv("qkv", "input", 36, 1)

    def part(name, begin):
        b.channels[b.unary(name, "Slice", "qkv", starts=[begin], ends=[begin + 12], axes=[1])] = 12
        return name

    def heads(name, x, perm):
        b.channels[b.unary(name, "Transpose", x, input_shape=["N", 3, 4, 5, 4], perm=perm,
                           output_shape=["N", 3, 4, 20] if perm[2] == 2 else ["N", 3, 20, 4])] = 3
        return name

    q, k, v = (heads(name, part(name + "_part", begin), perm) for name, begin, perm in
               (("q", 0, [0, 1, 3, 4, 2]), ("k", 12, [0, 1, 2, 3, 4]), ("v", 24, [0, 1, 3, 4, 2])))
    scores = b.node("scores", "MatMul", [q, k], 3)
    mixed = b.node("mixed", "MatMul", [b.unary("softmax", "Softmax", scores, axis=3), v], 3)
    each = b.relu("each_relu", b.unary("each", "MatMul", mixed, operand=[3, 4, 6]))
    front = b.unary("front", "MatMul", each, operand=[7, 20], operand_first=True)
    image = b.conv("image", each, 5, 3, 2, 1)
    tokens = b.unary("tokens", "Transpose", "input", perm=[0, 2, 3, 1], output_shape=["N", 20, 12])
    b.channels[tokens] = 20
    alike = b.node("alike", "MatMul", [tokens, b.unary("columns", "Transpose", tokens, perm=[0, 2, 1])], 20)
    return b.finish(b.concat("output", [b.flatten("flat_" + name, name) for name in (scores, front, image, alike)]))


GRAPHS = (inception_lrn, inception_bn, inception_factorised, residual_bottleneck, fire, dense_block,
          dcgan_head, transposed_variants, conv_variants, pools, normalisations, lrn_even,
          elementwise, movements, attention)
