#!/usr/bin/env python3
"""Records PyTorch's own error against float64, model by model, in models/errors.json.

    tools/record_errors.py                        every model and dtype the device can run, batch 1
    tools/record_errors.py --models resnet50 --dtypes f16 --batch 1 32 --device cuda

Parameters and input are those that convsched generates from the seed (docs/weights.md). The graph
runs as written, eagerly, in float64 and in the dtype, contiguous and channels-last (the larger error
counts); the error is the L2 norm of the difference over the L2 norm of the float64 outputs. An entry of the same model, dtype, batch, seed and device
is replaced, every other entry stays. Needs torch and numpy.
"""

import argparse
import json
import pathlib
import platform
import sys

import torch

import graph_json
import weights
from torch_graph import TorchGraph

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = "convsched.errors/1"
MODELS = ("googlenet", "googlenet_bn", "inception_v3", "resnet50", "squeezenet1_1", "densenet121",
          "dcgan_generator", "mobilenet_v2", "efficientnet_b0", "resnext50_32x4d", "inception_resnet_v2",
          "nasnet_a_mobile", "randwire_ws_small", "vgg16")
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16,
          "bf16": torch.bfloat16}
KEY = ("model", "dtype", "batch", "seed", "device")


def device_name(device):
    if device == "cuda":
        return torch.cuda.get_device_name()
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return "cpu: " + line.partition(":")[2].strip()
    return "cpu: " + platform.machine()


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def run(graph, state, inputs, dtype, device, channels_last=False):
    """The outputs as one float64 vector on the CPU."""
    module = TorchGraph(graph, state, dtype=DTYPES.get(dtype, torch.float64), device=device,
                        channels_last=channels_last)
    allow_tf32(dtype == "tf32")
    # As measured beside convsched: without it cuDNN may not take the tensor cores tf32 allows.
    torch.backends.cudnn.benchmark = device == "cuda"
    tensors = [torch.from_numpy(x).to(device=device, dtype=DTYPES.get(dtype, torch.float64))
               for x in inputs]
    return torch.cat([y.double().flatten().cpu() for y in module(*tensors)])


def measure(graph, dtypes, batch, seed, device):
    """Yields (dtype, relative L2 error, memory format): the larger error of the two formats, as
    PyTorch's libraries compute some graphs in tf32 in one of them only. Leaves out, with a line,
    what PyTorch cannot run."""
    state = weights.generate(graph, seed)
    inputs = [weights.generate_input(name, seed, shape)
              for name, shape in graph_json.input_shapes(graph, batch).items()]
    wanted = run(graph, state, inputs, "f64", device)
    for dtype in dtypes:
        try:
            found = {"channels_last" if last else "contiguous":
                     run(graph, state, inputs, dtype, device, last) for last in (False, True)}
        except NotImplementedError as problem:
            print(f"{graph.name} {dtype}: left out: {problem}", file=sys.stderr)
            continue
        errors = {form: float((y - wanted).norm() / wanted.norm()) for form, y in found.items()}
        form = max(errors, key=errors.get)
        yield dtype, errors[form], form


def merge(path, entries):
    """One entry a line, sorted, so that a new record is a readable diff."""
    merged = {}
    if path.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            sys.exit(f"{path}: schema {document['schema']}, wanted {SCHEMA}")
        merged = {tuple(entry[key] for key in KEY): entry for entry in document["entries"]}
    merged.update({tuple(entry[key] for key in KEY): entry for entry in entries})
    lines = ",\n".join("    " + json.dumps(merged[key]) for key in sorted(merged))
    path.write_text(f'{{\n  "schema": "{SCHEMA}",\n  "entries": [\n{lines}\n  ]\n}}\n',
                    encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="MODEL")
    parser.add_argument("--dtypes", nargs="+", default=None, choices=DTYPES, metavar="DTYPE")
    parser.add_argument("--batch", nargs="+", type=int, default=[1])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"),
                        default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "models" / "errors.json")
    options = parser.parse_args()
    dtypes = options.dtypes or [dtype for dtype in DTYPES
                                if dtype != "tf32" or options.device == "cuda"]
    if options.device == "cpu" and "tf32" in dtypes:
        parser.error("tf32 exists on a GPU only")
    fixed = {"torch": torch.__version__, "device": device_name(options.device)}
    for model in options.models:
        graph = graph_json.load(ROOT / "models" / f"{model}.json")
        for batch in options.batch:
            for dtype, error, form in measure(graph, dtypes, batch, options.seed, options.device):
                entry = {"model": model, "dtype": dtype, "batch": batch, "seed": options.seed,
                         "rel_l2": float(f"{error:.6g}"), "memory_format": form, **fixed}
                merge(options.out, [entry])
                print(f"{model} {dtype} batch {batch}: {error:.3e} ({form})", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
