#!/usr/bin/env python3
"""Checks models/*.json against the networks they were written after or imported from (needs torch,
torchvision, timm).

    tools/check_torchvision.py [NAME…]

For every model: the state_dict has exactly our parameters, in name and shape, apart from batch
counters and auxiliary heads; and with the same state our graph gives the network's
outputs in float64. The DCGAN generator is checked against a module built as the tutorial does, NASNet-A by
its large configuration, which timm has; RandWire has no other source. Exits 1 on a difference.
"""

import json
import math
import pathlib
import sys

import timm
import torch
import torchvision

import graph_json
import weights
from model_nasnet import nasnet_a_large
from torch_graph import TorchGraph

MODELS_DIR = pathlib.Path(__file__).resolve().parent.parent / "models"
TORCHVISION = {
    "googlenet_bn": lambda: torchvision.models.googlenet(weights=None, init_weights=False),
    "inception_v3": lambda: torchvision.models.inception_v3(weights=None, init_weights=False),
    "resnet50": lambda: torchvision.models.resnet50(weights=None),
    "squeezenet1_1": lambda: torchvision.models.squeezenet1_1(weights=None),
    "densenet121": lambda: torchvision.models.densenet121(weights=None),
    "vgg16": lambda: torchvision.models.vgg16(weights=None, init_weights=False),
    "mobilenet_v2": lambda: torchvision.models.mobilenet_v2(weights=None),
    "efficientnet_b0": lambda: torchvision.models.efficientnet_b0(weights=None),
    "resnext50_32x4d": lambda: torchvision.models.resnext50_32x4d(weights=None),
}
TIMM = {"inception_resnet_v2": lambda: timm.create_model("inception_resnet_v2"),
        "nasnet_a_large": lambda: timm.create_model("nasnetalarge")}
IGNORED_HEADS = ("aux1.", "aux2.", "AuxLogits.")


def dcgan_generator():
    latent, width, colours = 100, 64, 3
    layers, channels = [], latent
    for out, stride, pad in ((8, 1, 0), (4, 2, 1), (2, 2, 1), (1, 2, 1)):
        layers += [torch.nn.ConvTranspose2d(channels, out * width, 4, stride, pad, bias=False),
                   torch.nn.BatchNorm2d(out * width), torch.nn.ReLU(True)]
        channels = out * width
    layers += [torch.nn.ConvTranspose2d(channels, colours, 4, 2, 1, bias=False), torch.nn.Tanh()]
    return torch.nn.ModuleDict({"main": torch.nn.Sequential(*layers)})


def load(name):
    if name != "nasnet_a_large":
        return graph_json.load(MODELS_DIR / f"{name}.json")
    return graph_json.parse(json.loads(nasnet_a_large(count_pads=True)))


def constants(reference, names):
    """Parameters that are numbers there: the residual scales of Inception-ResNet, which `convsched import` makes
    a BatchNormalization called as the block, `.mul`."""
    scales = {"weight": lambda block: block.scale, "bias": lambda _: 0.0, "running_mean": lambda _: 0.0,
              "running_var": lambda _: 1.0}
    found = {}
    for name in names:
        node, _, what = name.rpartition(".")
        if node.endswith(".mul"):
            found[name] = scales[what](reference.get_submodule(node.removesuffix(".mul")))
    return found


def compare_names(graph, state, numbers):
    """Lines that say what differs."""
    ours = {name: list(shape) for name, shape in graph_json.parameter_shapes(graph).items() if name not in numbers}
    theirs = {name: list(tensor.shape) for name, tensor in state.items()
              if not name.startswith(IGNORED_HEADS) and not name.endswith("num_batches_tracked")}
    lines = [f"missing here: {name}" for name in sorted(theirs.keys() - ours.keys())]
    lines += [f"missing there: {name}" for name in sorted(ours.keys() - theirs.keys())]
    lines += [f"{name}: {ours[name]} here, {theirs[name]} there"
              for name in sorted(ours.keys() & theirs.keys()) if ours[name] != theirs[name]]
    return lines


def relative_error(graph, reference, numbers):
    """Relative L2 difference of the outputs in float64 with our generated parameters."""
    state = {name: torch.from_numpy(value).double() for name, value in weights.generate(graph, 1).items()}
    tensors = {name: value for name, value in state.items() if name not in numbers}
    state.update({name: torch.full_like(state[name], value) for name, value in numbers.items()})
    reference = reference.double().eval()
    reference.load_state_dict({**reference.state_dict(), **tensors})
    (name, shape), = graph_json.input_shapes(graph, 2).items()
    x = torch.from_numpy(weights.generate_input(name, 1, shape)).double()
    with torch.no_grad():
        wanted = reference["main"](x) if isinstance(reference, torch.nn.ModuleDict) \
            else reference(x)
    found, = TorchGraph(graph, state, dtype=torch.float64)(x)
    return float((found - wanted).norm() / wanted.norm())


def main():
    failed = False
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, timm {timm.__version__}")
    makers = {**TORCHVISION, "dcgan_generator": dcgan_generator, **TIMM}
    for name in sys.argv[1:] or makers:
        graph, reference = load(name), makers[name]()
        numbers = constants(reference, graph_json.parameter_shapes(graph))
        lines = compare_names(graph, reference.state_dict(), numbers)
        count = sum(math.prod(shape) for key, shape in graph_json.parameter_shapes(graph).items()
                    if not key.endswith(("running_mean", "running_var")) and key not in numbers)
        error = relative_error(graph, reference, numbers) if not lines else math.nan
        good = not lines and error < 1e-12
        failed |= not good
        print(f"{name}: {count:,} parameters, names and shapes "
              f"{'differ' if lines else 'equal'}, outputs differ by {error:.1e}: "
              f"{'ok' if good else 'FAILED'}")
        for line in lines:
            print("  " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
