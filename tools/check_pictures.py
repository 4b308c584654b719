#!/usr/bin/env python3
"""Compares the pictures of `convsched generate` with PyTorch's, of the same weights and latent vectors: the generator
of a DCGAN with random weights and running statistics, exported with torch.onnx.

    tools/check_pictures.py CONVSCHED [--count N] [--seed N] [--device cpu|cuda:0] [--dtype f32|tf32|f16]

PyTorch computes in f32 on its CPU. In f32 no byte may be off by more than 1, and 0.1% of them off at all; in other
precisions the differences are told and nothing is judged but that none is more than 16.
Exit: 0 as close as that, 1 not, 77 torch, onnx or PIL are not here.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx  # noqa: F401  torch.onnx wants it
    import PIL.Image
    import torch
except ImportError as error:
    print(f"not here: {error}")
    sys.exit(77)

OPSET = 17
CHANNELS = (512, 256, 128, 64, 3)
LATENT = 100
MOST_OFF, MOST_SHARE = 1, 1e-3  # of f32
MOST_OFF_ROUGH = 16


def make_generator(seed):
    torch.manual_seed(seed)
    layers, before = [], LATENT
    for i, channels in enumerate(CHANNELS):
        stride, pad = (1, 0) if i == 0 else (2, 1)
        layers.append(torch.nn.ConvTranspose2d(before, channels, 4, stride, pad, bias=False))
        last = i == len(CHANNELS) - 1
        if not last:
            layers.append(torch.nn.BatchNorm2d(channels))
        layers.append(torch.nn.Tanh() if last else torch.nn.ReLU())
        before = channels
    model = torch.nn.Sequential(*layers)
    # Running statistics of random batches: the pictures then have every brightness.
    for module in model:
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
            torch.nn.init.normal_(module.weight, 1.0, 0.2)
            torch.nn.init.normal_(module.bias, 0.0, 0.2)
    model.train()
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(32, LATENT, 1, 1))
        model[-2].weight *= 4  # past the middle of Tanh
    return model.eval()


def export(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.zeros(1, LATENT, 1, 1),), str(path), opset_version=OPSET, dynamo=False,
                          input_names=["z"], output_names=["faces"], dynamic_axes={"z": {0: "N"}, "faces": {0: "N"}})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("convsched", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="f32")
    args = parser.parse_args()
    model = make_generator(args.seed)
    latents = torch.randn(args.count, LATENT, 1, 1)
    with torch.no_grad():
        wanted = ((model(latents) + 1) * 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        export(model, folder / "generator.onnx")
        np.save(folder / "z.npy", latents.numpy())
        subprocess.run([args.convsched.resolve(), "generate", "generator.onnx", "--latents", "z.npy", "--output", "faces/",
                        "--device", args.device, "--dtype", args.dtype, "--policy", "sequential", "--quiet"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        found = np.stack([np.asarray(PIL.Image.open(folder / f"faces/{i:06}.png")) for i in range(args.count)])
    off = np.abs(found.astype(int) - wanted.astype(int))
    most, share = int(off.max()), float((off > 0).mean())
    limit = MOST_OFF if args.dtype == "f32" else MOST_OFF_ROUGH
    good = most <= limit and (args.dtype != "f32" or share <= MOST_SHARE)
    print(f"{args.count} pictures, {args.dtype} on {args.device}, torch {torch.__version__}: {found.size} bytes from "
          f"{found.min()} to {found.max()}; most off {most} of 255 (limit {limit}), off at all {100 * share:.4f}%"
          f"{f' (limit {100 * MOST_SHARE:g}%)' if args.dtype == 'f32' else ''}: {'ok' if good else 'NOT ok'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
