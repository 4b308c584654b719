#!/usr/bin/env python3
"""Checks models/*.json against the networks they were written after (needs torch, torchvision).

For every torchvision model: the state_dict has exactly our parameters, in name and shape, apart
from batch counters and auxiliary heads; and with the same state our graph gives torchvision's
outputs in float64. The DCGAN generator is checked against a module built as the tutorial does.
Exits 1 on a difference.
"""

import math
import pathlib
import sys

import torch
import torchvision

import graph_json
import weights
from torch_graph import TorchGraph

MODELS_DIR = pathlib.Path(__file__).resolve().parent.parent / "models"
TORCHVISION = {
    "googlenet_bn": lambda: torchvision.models.googlenet(weights=None, init_weights=False),
    "inception_v3": lambda: torchvision.models.inception_v3(weights=None, init_weights=False),
    "resnet50": lambda: torchvision.models.resnet50(weights=None),
    "squeezenet1_1": lambda: torchvision.models.squeezenet1_1(weights=None),
    "densenet121": lambda: torchvision.models.densenet121(weights=None),
}
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


def compare_names(graph, state):
    """Lines that say what differs."""
    ours = {name: list(shape) for name, shape in graph_json.parameter_shapes(graph).items()}
    theirs = {name: list(tensor.shape) for name, tensor in state.items()
              if not name.startswith(IGNORED_HEADS) and not name.endswith("num_batches_tracked")}
    lines = [f"missing here: {name}" for name in sorted(theirs.keys() - ours.keys())]
    lines += [f"missing there: {name}" for name in sorted(ours.keys() - theirs.keys())]
    lines += [f"{name}: {ours[name]} here, {theirs[name]} there"
              for name in sorted(ours.keys() & theirs.keys()) if ours[name] != theirs[name]]
    return lines


def relative_error(graph, reference):
    """Relative L2 difference of the outputs in float64 with our generated parameters."""
    state = weights.generate(graph, 1)
    tensors = {name: torch.from_numpy(value).double() for name, value in state.items()}
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
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")
    for name, make in {**TORCHVISION, "dcgan_generator": dcgan_generator}.items():
        graph, reference = graph_json.load(MODELS_DIR / f"{name}.json"), make()
        lines = compare_names(graph, reference.state_dict())
        count = sum(math.prod(shape) for key, shape in graph_json.parameter_shapes(graph).items()
                    if not key.endswith(("running_mean", "running_var")))
        error = relative_error(graph, reference) if not lines else math.nan
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
