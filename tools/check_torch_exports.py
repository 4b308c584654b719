#!/usr/bin/env python3
"""Exports torchvision's classification networks with torch.onnx (TorchScript, opset 17), imports them, and
compares what libconvsched computes with PyTorch in float64 (docs/verification.md, (c)).

    tools/check_torch_exports.py LIBCONVSCHED [--models NAME…] [--seed N] [--batch N] [--keep FOLDER]
                                              [--device cuda:0 [--dtype f32|tf32|f16|bf16]]

Weights are PyTorch's initial ones from the seed; BatchNormalization has the statistics of a random batch,
so that activations keep their size. The error is the L2 norm of the difference over that of the float64
outputs; it may be twice that of PyTorch in the same precision on the same device (the larger of its two memory
formats). Winograd in f32 rounds more: where it was chosen and the error is past the limit, the network without it is judged.
Exit: 0 all good, 1 some are wrong or cannot be imported, 77 torch, torchvision or onnx are not here.
"""
import argparse
import copy
import ctypes
import pathlib
import re
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx  # noqa: F401  torch.onnx wants it
    import torch
    import torchvision
except ImportError as error:
    print(f"not here: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import convsched  # noqa: E402
from record_errors import DTYPES, allow_tf32  # noqa: E402

OPSET = 17
MOST = 2.0  # times PyTorch's own error
MODELS = ("alexnet", "vgg11", "resnet18", "resnet50", "squeezenet1_0", "squeezenet1_1", "densenet121", "googlenet",
          "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "mnasnet1_0", "resnext50_32x4d", "wide_resnet50_2",
          "efficientnet_b0", "regnet_y_400mf", "shufflenet_v2_x1_0", "convnext_tiny")
NO_HEADS = {"googlenet": {"aux_logits": False, "init_weights": True}, "inception_v3": {"aux_logits": False, "init_weights": False}}


def make(name, seed, extent):
    """The network, to be evaluated, in float32."""
    torch.manual_seed(seed)
    model = getattr(torchvision.models, name)(weights=None, **NO_HEADS.get(name, {}))
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0  # the statistics are the batch's
    model.eval()
    for norm in norms:
        norm.train()
    with torch.no_grad():
        model(torch.randn(4, 3, extent, extent))
    return model.eval()


def export(model, x, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, opset_version=OPSET, dynamo=False, input_names=["input"],
                          output_names=["output"], dynamic_axes={"input": {0: "N"}, "output": {0: "N"}})


def outputs(model, x, dtype, memory_format, device):
    to = {"dtype": dtype, "memory_format": memory_format, "device": device}
    with torch.no_grad():
        y = copy.deepcopy(model).to(**to)(x.to(**to))
    return y.double().cpu().numpy()


def error(found, wanted):
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def ours(device, graph, x, options, cache, bans=()):
    """(outputs, ids of the candidates that computed them)"""
    found = np.zeros(graph.output_shapes(len(x))[0], np.float32)
    ids = (ctypes.c_char_p * len(bans))(*[ban.encode() for ban in bans])
    with convsched.Session(device, graph, batch=len(x), precision=options.dtype, cache_dir=cache, bans=ids,
                           n_bans=len(bans)) as session:
        session.run([x.numpy()], [found])
        return found.astype(np.float64), {task["candidate"] for task in session.info()["tasks"]}


def errors(library, device, path, x, wanted, limit, options, cache):
    """(error, error without Winograd where the first is past the limit and there was any)"""
    with library.load_graph(path) as graph:
        found, ids = ours(device, graph, x, options, cache)
        first = last = error(found, wanted)
        bans = set()
        while first > limit and any("wino" in i.lower() for i in ids):
            bans |= {i for i in ids if "wino" in i.lower()}
            found, ids = ours(device, graph, x, options, cache, sorted(bans))
            last = error(found, wanted)
    return first, last


def check(library, device, name, options, folder):
    """(whether it is good, a row of the table)"""
    extent = 299 if name == "inception_v3" else 224
    model = make(name, options.seed, extent)
    torch.manual_seed(options.seed + 1)
    x = torch.randn(options.batch, 3, extent, extent)
    path = str(folder / f"{name}.onnx")
    export(model, x, path)
    place = "cpu" if options.device == "cpu" else "cuda"
    allow_tf32(options.dtype == "tf32")
    theirs = [outputs(model, x, DTYPES[options.dtype], form, place)
              for form in (torch.contiguous_format, torch.channels_last)]
    wanted = outputs(model, x, torch.float64, torch.contiguous_format, place)
    most = max(error(y, wanted) for y in theirs)
    row = f"| {name} | {most:.1e} |"
    try:
        found, without = errors(library, device, path, x, wanted, MOST * most, options, str(folder / "cache"))
    except convsched.Error as problem:
        reasons = re.sub(r"\s+", " ", str(problem).partition(":\n")[2] or str(problem))
        return False, f"{row} | {reasons[:300]} |"
    row += f" {found:.1e} |"
    if found <= MOST * most:
        return True, f"{row} ok |"
    if without <= MOST * most:
        return True, f"{row} {found / most:.1f} times PyTorch's error by Winograd; {without:.1e} without it |"
    return False, f"{row} more than {MOST:g} times PyTorch's error |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda:N")
    parser.add_argument("--dtype", default="f32", choices=DTYPES)
    parser.add_argument("--keep", type=pathlib.Path, help="leave the ONNX files in this folder")
    options = parser.parse_args()
    if options.device == "cpu" and options.dtype != "f32":
        parser.error(f"--dtype {options.dtype}: a CPU computes in f32")
    library = convsched.Library(options.library)
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary, library.open_device(options.device) as device:
        print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, batch {options.batch}, seed {options.seed}, "
              f"{device.info()['name']}\n")
        print(f"| model | PyTorch {options.dtype} | convsched {options.dtype} | outcome |\n|---|---|---|---|")
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in options.models:
            good, row = check(library, device, name, options, folder)
            wrong += not good
            print(row, flush=True)
    print(f"\n{len(options.models) - wrong} of {len(options.models)} good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
