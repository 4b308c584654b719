"""NASNet-A, for tools/make_models.py.

Source: Zoph et al., "Learning transferable architectures for scalable image recognition", 2018, figure 4 and
appendix A: cells of five additions, each of two of: separable convolutions of 3×3, 5×5 and 7×7, applied twice;
pools of 3×3; the input. As in the authors' TensorFlow network: two reduction cells as stem; windows padded as
TensorFlow's SAME, padding not counted in averages; an input of another extent than the cell's goes through two
paths of every second pixel, the other one shifted by one. Names are timm's `nasnetalarge`.
"""

from graph_builder import Builder

EPSILON = 0.001


def same(extent, kernel, stride):
    """(pads top, left, bottom, right, extent of the output), as TensorFlow's SAME."""
    out = -(-extent // stride)
    total = max((out - 1) * stride + kernel - extent, 0)
    return [total // 2, total // 2, total - total // 2, total - total // 2], out


class NasnetBuilder(Builder):
    """Knows the extent of every value (height and width are one), and has one Relu a value."""

    def __init__(self, name, extent, count_pads):
        super().__init__(name, "input", ["N", 3, extent, extent])
        self.extents, self.count_pads, self.relus = {"input": extent}, count_pads, {}

    def node(self, name, op, inputs, channels, **attrs):
        self.extents[name] = self.extents[inputs[0]]
        return super().node(name, op, inputs, channels, **attrs)

    def rectified(self, x):
        if x not in self.relus:
            self.relus[x] = self.relu(x + ".relu", x)
        return self.relus[x]

    def window(self, make, name, x, kernel, stride, *args, **kwargs):
        """A convolution or pool of SAME padding; `make` takes pads after its other arguments."""
        pads, out = same(self.extents[x], kernel, stride)
        y = make(name, x, *args, kernel, stride, pads, **kwargs)
        self.extents[y] = out
        return y

    def pool(self, p, kind, x, stride):
        if kind == "max":
            return self.window(self.max_pool, p, x, 3, stride)
        # timm counts the padding where it lies on one side of a window of stride 2 alone.
        return self.window(self.average_pool, p, x, 3, stride, include_pad=self.count_pads and stride == 2)

    def separable(self, p, x, out, kernel, stride=1):
        """Relu, depthwise and 1×1 convolution, BatchNormalization, twice; the first has the stride."""
        for turn in (1, 2):
            q = f"{p}.separable_{turn}"
            group = self.channels[x]
            x = self.window(self.conv, q + ".depthwise_conv2d", self.rectified(x), kernel, stride, group,
                            bias=False, group=group)
            x = self.norm(f"{p}.bn_sep_{turn}", self.conv(q + ".pointwise_conv2d", x, out, 1, bias=False), EPSILON)
            stride = 1
        return x

    def project(self, p, x, out):
        return self.norm(p + ".bn", self.conv(p + ".conv", self.rectified(x), out, 1, bias=False), EPSILON)

    def halve(self, p, x, out):
        """Every second pixel, and of the image shifted by one, zeros at its end."""
        x = self.rectified(x)
        shifted = self.unary(p + "path_2.pad", "Pad", x, pads=[0, 0, -1, -1, 0, 0, 1, 1], value=0.0)
        halves = []
        for path, y in (("path_1", x), ("path_2", shifted)):
            y = self.average_pool(f"{p}{path}.avgpool", y, 1, 2)
            self.extents[y] = (self.extents[x] + 1) // 2
            halves.append(self.conv(f"{p}{path}.conv", y, out // 2, 1, bias=False))
        return self.norm(p + "final_path_bn", self.concat(p + "path", halves), EPSILON)


def fitted(b, p, x, previous, filters, first_name):
    """The cell's two inputs, with `filters` channels and of one extent."""
    if b.extents[previous] != b.extents[x]:
        left = b.halve(p, previous, filters)
    else:
        left = b.project(p + first_name, previous, filters)
    return left, b.project(p + "conv_1x1", x, filters)


def normal_cell(b, cell, x, previous, filters):
    p = cell + "."
    left, right = fitted(b, p, x, previous, filters, "conv_prev_1x1")

    def branch(step, side, y, kernel):
        return b.separable(f"{p}comb_iter_{step}_{side}", y, filters, kernel)

    def average(step, side, y):
        return b.pool(f"{p}comb_iter_{step}_{side}", "average", y, 1)

    sums = [b.add(p + "comb_iter_0", branch(0, "left", right, 5), branch(0, "right", left, 3)),
            b.add(p + "comb_iter_1", branch(1, "left", left, 5), branch(1, "right", left, 3)),
            b.add(p + "comb_iter_2", average(2, "left", right), left),
            b.add(p + "comb_iter_3", average(3, "left", left), average(3, "right", left)),
            b.add(p + "comb_iter_4", branch(4, "left", right, 3), right)]
    return b.concat(cell, [left, *sums])


def reduction_cell(b, cell, x, previous, filters):
    """`previous`: None for the first one, which has the image's convolution in its place."""
    p = cell + "."
    if previous is None:
        left, right = x, b.project(p + "conv_1x1", x, filters)
    else:
        left, right = fitted(b, p, x, previous, filters, "conv_prev_1x1")

    def branch(step, side, y, kernel, stride=2):
        return b.separable(f"{p}comb_iter_{step}_{side}", y, filters, kernel, stride)

    def pool(step, side, kind, y, stride=2):
        return b.pool(f"{p}comb_iter_{step}_{side}", kind, y, stride)

    zero = b.add(p + "comb_iter_0", branch(0, "left", right, 5), branch(0, "right", left, 7))
    one = b.add(p + "comb_iter_1", pool(1, "left", "max", right), branch(1, "right", left, 7))
    sums = [one,
            b.add(p + "comb_iter_2", pool(2, "left", "average", right), branch(2, "right", left, 5)),
            b.add(p + "comb_iter_3", pool(3, "right", "average", zero, 1), one),
            b.add(p + "comb_iter_4", branch(4, "left", zero, 3, 1), pool(4, "right", "max", right))]
    return b.concat(cell, sums)


def nasnet_a(name, cells, features, stem, extent, skip_reduction, count_pads=False):
    """Builder and output of NASNet-A (cells @ features): three groups of `cells` normal cells. Behind a reduction
    cell the previous input is the reduction's own one, or (`skip_reduction`) the one before."""
    b = NasnetBuilder(name, extent, count_pads)
    filters = features // 24
    x = b.norm("conv0.bn", b.conv("conv0.conv", "input", stem, 3, 2, bias=False), EPSILON)
    b.extents[x] = (extent - 3) // 2 + 1
    previous, x = x, reduction_cell(b, "cell_stem_0", x, None, filters // 4)
    previous, x = x, reduction_cell(b, "cell_stem_1", x, previous, filters // 2)
    for group in range(3):
        if group:
            reduced = reduction_cell(b, f"reduction_cell_{group - 1}", x, previous, filters << group)
            previous, x = previous if skip_reduction else x, reduced
        for index in range(cells * group, cells * (group + 1)):
            previous, x = x, normal_cell(b, f"cell_{index}", x, previous, filters << group)
    x = b.flatten("flatten", b.unary("global_pool", "GlobalAveragePool", b.rectified(x)))
    return b, b.gemm("last_linear", x, 1000)


def nasnet_a_mobile():
    b, output = nasnet_a("nasnet_a_mobile", cells=4, features=1056, stem=32, extent=224, skip_reduction=False)
    return b.text(output, 5_289_978)


def nasnet_a_large(count_pads):
    """Not committed: what tools/check_torchvision.py compares with timm's network."""
    b, output = nasnet_a("nasnet_a_large", cells=6, features=4032, stem=96, extent=331, skip_reduction=True,
                         count_pads=count_pads)
    return b.text(output, 88_753_150)
