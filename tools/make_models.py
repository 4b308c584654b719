#!/usr/bin/env python3
"""Writes models/*.json (convsched.graph/1).

    tools/make_models.py            write every model
    tools/make_models.py --check    exit 1 if a committed file differs from what would be written

Each model names its source above its function; docs/models.md repeats it. Parameter names are the
source's, so that its weights load unchanged. Python's standard library is all it needs.
"""

import argparse
import pathlib
import sys

from graph_builder import Builder, write_or_compare
from model_nasnet import nasnet_a_mobile
from model_randwire import randwire_ws_small

MODELS_DIR = pathlib.Path(__file__).resolve().parent.parent / "models"


# Branch widths of the nine modules: 1×1, 3×3 reduce, 3×3, 5×5 reduce, 5×5, pool projection.
INCEPTION_WIDTHS = {
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


# Source: Szegedy et al., "Going deeper with convolutions", 2014, table 1; layer names, padding and
# pooling rounded up as in Caffe's bvlc_googlenet deploy network (its auxiliary heads are training
# only and absent there too). 6,998,552 parameters.
def googlenet():
    b = Builder("googlenet", "input", ["N", 3, 224, 224])

    def conv(name, x, out, kernel, stride=1, pad=0):
        y = b.conv(name, x, out, kernel, stride, pad)
        folder, _, leaf = name.rpartition("/")
        return b.relu(f"{folder}/relu_{leaf}", y)

    def lrn(name, x):
        return b.unary(name, "LRN", x, size=5, alpha=0.0001, beta=0.75, bias=1.0)

    def inception(tag, x):
        p = f"inception_{tag}/"
        n1, r3, n3, r5, n5, npool = INCEPTION_WIDTHS[tag]
        one = conv(p + "1x1", x, n1, 1)
        three = conv(p + "3x3", conv(p + "3x3_reduce", x, r3, 1), n3, 3, 1, 1)
        five = conv(p + "5x5", conv(p + "5x5_reduce", x, r5, 1), n5, 5, 1, 2)
        pool = conv(p + "pool_proj", b.max_pool(p + "pool", x, 3, 1, 1, ceil=True), npool, 1)
        return b.concat(p + "output", [one, three, five, pool])

    x = conv("conv1/7x7_s2", "input", 64, 7, 2, 3)
    x = lrn("pool1/norm1", b.max_pool("pool1/3x3_s2", x, 3, 2, ceil=True))
    x = conv("conv2/3x3", conv("conv2/3x3_reduce", x, 64, 1), 192, 3, 1, 1)
    x = b.max_pool("pool2/3x3_s2", lrn("conv2/norm2", x), 3, 2, ceil=True)
    x = inception("3b", inception("3a", x))
    x = b.max_pool("pool3/3x3_s2", x, 3, 2, ceil=True)
    for tag in ("4a", "4b", "4c", "4d", "4e"):
        x = inception(tag, x)
    x = b.max_pool("pool4/3x3_s2", x, 3, 2, ceil=True)
    x = inception("5b", inception("5a", x))
    x = b.average_pool("pool5/7x7_s1", x, 7, 1)
    x = b.flatten("flatten", b.unary("pool5/drop_7x7_s1", "Dropout", x))
    x = b.unary("prob", "Softmax", b.gemm("loss3/classifier", x, 1000), axis=1)
    return b.text(x, 6_998_552)


# Source: torchvision.models.googlenet in evaluation mode without auxiliary heads: BatchNorm, and
# 3×3 in the place of 5×5. transform_input, which torchvision adds for its ImageNet weights only,
# is left out. 6,624,904 parameters.
def googlenet_bn():
    b = Builder("googlenet_bn", "input", ["N", 3, 224, 224])

    def conv(name, x, out, kernel, stride=1, pad=0):
        y = b.conv(name + ".conv", x, out, kernel, stride, pad, bias=False)
        return b.relu(name + ".relu", b.norm(name + ".bn", y, 0.001))

    def inception(tag, x):
        p = f"inception{tag}."
        n1, r3, n3, r5, n5, npool = INCEPTION_WIDTHS[tag]
        one = conv(p + "branch1", x, n1, 1)
        two = conv(p + "branch2.1", conv(p + "branch2.0", x, r3, 1), n3, 3, 1, 1)
        three = conv(p + "branch3.1", conv(p + "branch3.0", x, r5, 1), n5, 3, 1, 1)
        four = conv(p + "branch4.1", b.max_pool(p + "branch4.0", x, 3, 1, 1, ceil=True), npool, 1)
        return b.concat(f"inception{tag}", [one, two, three, four])

    x = b.max_pool("maxpool1", conv("conv1", "input", 64, 7, 2, 3), 3, 2, ceil=True)
    x = conv("conv3", conv("conv2", x, 64, 1), 192, 3, 1, 1)
    x = b.max_pool("maxpool2", x, 3, 2, ceil=True)
    x = inception("3b", inception("3a", x))
    x = b.max_pool("maxpool3", x, 3, 2, ceil=True)
    for tag in ("4a", "4b", "4c", "4d", "4e"):
        x = inception(tag, x)
    x = b.max_pool("maxpool4", x, 2, 2, ceil=True)
    x = inception("5b", inception("5a", x))
    x = b.flatten("flatten", b.unary("avgpool", "GlobalAveragePool", x))
    x = b.gemm("fc", b.unary("dropout", "Dropout", x), 1000)
    return b.text(x, 6_624_904)


# Source: torchvision.models.inception_v3 in evaluation mode, 3×299×299, without the auxiliary head
# (torchvision's 27,161,264 parameters include it) and without transform_input, which torchvision
# adds for its ImageNet weights only. Its average pools count padding. 23,834,568 parameters.
def inception_v3():
    b = Builder("inception_v3", "input", ["N", 3, 299, 299])

    def conv(name, x, out, kernel, stride=1, pad=0):
        y = b.conv(name + ".conv", x, out, kernel, stride, pad, bias=False)
        return b.relu(name + ".relu", b.norm(name + ".bn", y, 0.001))

    def chain(x, *steps):
        for step in steps:
            x = conv(step[0], x, *step[1:])
        return x

    def pool_branch(p, x, out):
        pooled = b.average_pool(p + ".avg_pool", x, 3, 1, 1, include_pad=True)
        return conv(p + ".branch_pool", pooled, out, 1)

    def block_a(p, x, pool_features):
        q = p + ".branch"
        return b.concat(p, [
            conv(q + "1x1", x, 64, 1),
            chain(x, (q + "5x5_1", 48, 1), (q + "5x5_2", 64, 5, 1, 2)),
            chain(x, (q + "3x3dbl_1", 64, 1), (q + "3x3dbl_2", 96, 3, 1, 1),
                  (q + "3x3dbl_3", 96, 3, 1, 1)),
            pool_branch(p, x, pool_features)])

    def block_b(p, x):
        q = p + ".branch"
        return b.concat(p, [
            conv(q + "3x3", x, 384, 3, 2),
            chain(x, (q + "3x3dbl_1", 64, 1), (q + "3x3dbl_2", 96, 3, 1, 1),
                  (q + "3x3dbl_3", 96, 3, 2)),
            b.max_pool(p + ".max_pool", x, 3, 2)])

    def block_c(p, x, c7):
        q, row, column = p + ".branch", ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
        return b.concat(p, [
            conv(q + "1x1", x, 192, 1),
            chain(x, (q + "7x7_1", c7, 1), (q + "7x7_2", c7, *row), (q + "7x7_3", 192, *column)),
            chain(x, (q + "7x7dbl_1", c7, 1), (q + "7x7dbl_2", c7, *column),
                  (q + "7x7dbl_3", c7, *row), (q + "7x7dbl_4", c7, *column),
                  (q + "7x7dbl_5", 192, *row)),
            pool_branch(p, x, 192)])

    def block_d(p, x):
        q = p + ".branch"
        return b.concat(p, [
            chain(x, (q + "3x3_1", 192, 1), (q + "3x3_2", 320, 3, 2)),
            chain(x, (q + "7x7x3_1", 192, 1), (q + "7x7x3_2", 192, (1, 7), 1, (0, 3)),
                  (q + "7x7x3_3", 192, (7, 1), 1, (3, 0)), (q + "7x7x3_4", 192, 3, 2)),
            b.max_pool(p + ".max_pool", x, 3, 2)])

    def block_e(p, x):
        q = p + ".branch"

        def split(y, stem):
            return b.concat(f"{p}.{stem}", [conv(f"{p}.{stem}a", y, 384, (1, 3), 1, (0, 1)),
                                            conv(f"{p}.{stem}b", y, 384, (3, 1), 1, (1, 0))])

        one = conv(q + "1x1", x, 320, 1)
        three = split(conv(q + "3x3_1", x, 384, 1), "branch3x3_2")
        double = chain(x, (q + "3x3dbl_1", 448, 1), (q + "3x3dbl_2", 384, 3, 1, 1))
        return b.concat(p, [one, three, split(double, "branch3x3dbl_3"), pool_branch(p, x, 192)])

    x = chain("input", ("Conv2d_1a_3x3", 32, 3, 2), ("Conv2d_2a_3x3", 32, 3),
              ("Conv2d_2b_3x3", 64, 3, 1, 1))
    x = b.max_pool("maxpool1", x, 3, 2)
    x = chain(x, ("Conv2d_3b_1x1", 80, 1), ("Conv2d_4a_3x3", 192, 3))
    x = b.max_pool("maxpool2", x, 3, 2)
    for tag, pool_features in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = block_a("Mixed_" + tag, x, pool_features)
    x = block_b("Mixed_6a", x)
    for tag, c7 in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = block_c("Mixed_" + tag, x, c7)
    x = block_e("Mixed_7c", block_e("Mixed_7b", block_d("Mixed_7a", x)))
    x = b.unary("dropout", "Dropout", b.unary("avgpool", "GlobalAveragePool", x))
    x = b.gemm("fc", b.flatten("flatten", x), 1000)
    return b.text(x, 23_834_568)


# Source: torchvision.models.resnet50 (the stride of a stage lies in its first 3×3).
# 25,557,032 parameters.
def resnet50():
    b = Builder("resnet50", "input", ["N", 3, 224, 224])

    def conv(name, norm, x, out, kernel, stride=1, pad=0):
        return b.norm(norm, b.conv(name, x, out, kernel, stride, pad, bias=False))

    def bottleneck(p, x, width, stride, downsample):
        y = b.relu(p + "relu1", conv(p + "conv1", p + "bn1", x, width, 1))
        y = b.relu(p + "relu2", conv(p + "conv2", p + "bn2", y, width, 3, stride, 1))
        y = conv(p + "conv3", p + "bn3", y, 4 * width, 1)
        if downsample:
            x = conv(p + "downsample.0", p + "downsample.1", x, 4 * width, 1, stride)
        return b.relu(p + "relu", b.node(p + "add", "Add", [y, x], 4 * width))

    x = b.relu("relu", conv("conv1", "bn1", "input", 64, 7, 2, 3))
    x = b.max_pool("maxpool", x, 3, 2, 1)
    for stage, (width, blocks, stride) in enumerate(
            [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)], start=1):
        for block in range(blocks):
            x = bottleneck(f"layer{stage}.{block}.", x, width, stride if block == 0 else 1,
                           block == 0)
    x = b.gemm("fc", b.flatten("flatten", b.unary("avgpool", "GlobalAveragePool", x)), 1000)
    return b.text(x, 25_557_032)


# Source: torchvision.models.vgg16 (Simonyan and Zisserman, "Very deep convolutional networks for
# large-scale image recognition", 2015, configuration D). Its adaptive pool to 7×7 changes nothing of
# 224×224 and is left out. 138,357,544 parameters.
def vgg16():
    b = Builder("vgg16", "input", ["N", 3, 224, 224])
    x, index = "input", 0
    for widths in ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)):
        for width in widths:
            x = b.relu(f"features.{index + 1}", b.conv(f"features.{index}", x, width, 3, 1, 1))
            index += 2
        x = b.max_pool(f"features.{index}", x, 2, 2)
        index += 1
    x = b.flatten("flatten", x, 7 * 7)
    for layer in (0, 3):
        x = b.relu(f"classifier.{layer + 1}", b.gemm(f"classifier.{layer}", x, 4096))
        x = b.unary(f"classifier.{layer + 2}", "Dropout", x)
    return b.text(b.gemm("classifier.6", x, 1000), 138_357_544)


# Source: torchvision.models.squeezenet1_1. 1,235,496 parameters.
def squeezenet1_1():
    b = Builder("squeezenet1_1", "input", ["N", 3, 224, 224])

    def fire(index, x, squeeze, expand):
        p = f"features.{index}."
        s = b.relu(p + "squeeze_activation", b.conv(p + "squeeze", x, squeeze, 1))
        one = b.relu(p + "expand1x1_activation", b.conv(p + "expand1x1", s, expand, 1))
        three = b.relu(p + "expand3x3_activation", b.conv(p + "expand3x3", s, expand, 3, 1, 1))
        return b.concat(f"features.{index}", [one, three])

    x = b.relu("features.1", b.conv("features.0", "input", 64, 3, 2))
    x = b.max_pool("features.2", x, 3, 2, ceil=True)
    x = fire(4, fire(3, x, 16, 64), 16, 64)
    x = b.max_pool("features.5", x, 3, 2, ceil=True)
    x = fire(7, fire(6, x, 32, 128), 32, 128)
    x = b.max_pool("features.8", x, 3, 2, ceil=True)
    for index, squeeze, expand in ((9, 48, 192), (10, 48, 192), (11, 64, 256), (12, 64, 256)):
        x = fire(index, x, squeeze, expand)
    x = b.conv("classifier.1", b.unary("classifier.0", "Dropout", x), 1000, 1)
    x = b.unary("classifier.3", "GlobalAveragePool", b.relu("classifier.2", x))
    return b.text(b.flatten("flatten", x), 1_235_496)


# Source: torchvision.models.densenet121. 7,978,856 parameters.
def densenet121():
    b = Builder("densenet121", "input", ["N", 3, 224, 224])
    growth, bottleneck = 32, 4

    def layer(p, features):
        x = features[0] if len(features) == 1 else b.concat(p + ".concat", features)
        x = b.relu(p + ".relu1", b.norm(p + ".norm1", x))
        x = b.conv(p + ".conv1", x, bottleneck * growth, 1, bias=False)
        x = b.relu(p + ".relu2", b.norm(p + ".norm2", x))
        return b.conv(p + ".conv2", x, growth, 3, 1, 1, bias=False)

    x = b.conv("features.conv0", "input", 64, 7, 2, 3, bias=False)
    x = b.relu("features.relu0", b.norm("features.norm0", x))
    x = b.max_pool("features.pool0", x, 3, 2, 1)
    layers = (6, 12, 24, 16)
    for block, count in enumerate(layers, start=1):
        p = f"features.denseblock{block}"
        features = [x]
        for index in range(1, count + 1):
            features.append(layer(f"{p}.denselayer{index}", features))
        x = b.concat(p, features)
        if block == len(layers):
            break
        p = f"features.transition{block}"
        x = b.relu(p + ".relu", b.norm(p + ".norm", x))
        x = b.conv(p + ".conv", x, b.channels[x] // 2, 1, bias=False)
        x = b.average_pool(p + ".pool", x, 2, 2)
    x = b.relu("relu", b.norm("features.norm5", x))
    x = b.flatten("flatten", b.unary("avgpool", "GlobalAveragePool", x))
    return b.text(b.gemm("classifier", x, 1000), 7_978_856)


# Source: the generator of PyTorch's DCGAN tutorial (after Radford et al., "Unsupervised
# representation learning with deep convolutional generative adversarial networks", 2016) with
# nz = 100, ngf = 64, nc = 3. 3,576,704 parameters.
def dcgan_generator():
    b = Builder("dcgan_generator", "z", ["N", 100, 1, 1])
    x = "z"
    for index, (out, stride, pad) in enumerate(((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1))):
        first = 3 * index
        x = b.conv(f"main.{first}", x, out, 4, stride, pad, bias=False, op="ConvTranspose")
        x = b.relu(f"main.{first + 2}", b.norm(f"main.{first + 1}", x))
    x = b.conv("main.12", x, 3, 4, 2, 1, bias=False, op="ConvTranspose")
    return b.text(b.unary("main.13", "Tanh", x), 3_576_704)


MODELS = (googlenet, googlenet_bn, inception_v3, resnet50, squeezenet1_1, densenet121,
          dcgan_generator, nasnet_a_mobile, randwire_ws_small, vgg16)


def main():
    parser = argparse.ArgumentParser(description="Writes models/*.json.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--out", type=pathlib.Path, default=MODELS_DIR, help="folder")
    options = parser.parse_args()
    files = ((options.out / f"{model.__name__}.json", model()) for model in MODELS)
    return write_or_compare(files, options.check, "tools/make_models.py")


if __name__ == "__main__":
    sys.exit(main())
