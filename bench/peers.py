#!/usr/bin/env python3
"""Measures convsched beside other systems, in one process, interleaved: one latency sample of each
contender in turn, on the same weights and the same input, and writes convsched.run/1 records.

On a GPU the others are PyTorch's modes (eager, a CUDA graph, a CUDA graph with a stream per branch,
each in NCHW and channels-last; the better layout is kept). With --cpu it is ONNX Runtime, and
PyTorch where it is installed. Outputs of all are compared with float64.

    bench/peers.py --lib build/release/libconvsched.so --models googlenet --dtypes tf32,f16 \\
                   --batches 1,8,32 --out bench/results/NAME.jsonl
"""
import argparse
import os
import pathlib
import platform
import sys
import tempfile
import time

import numpy

import convsched
import records
import graph_json
import weights_file
from contenders import Convsched, OnnxRuntime

WARM_UP = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    split = lambda text: [t for t in text.split(",") if t]
    parser.add_argument("--models", type=split, default=["googlenet"], help="names under models/, or paths")
    parser.add_argument("--dtypes", type=split, default=None, help="default: f32 with --cpu, else tf32,f16")
    parser.add_argument("--batches", type=split, default=["1"])
    parser.add_argument("--policies", type=split, default=["sequential", "streams"])
    parser.add_argument("--rounds", type=int, default=50, help="samples of each contender")
    parser.add_argument("--lib", default=str(records.ROOT / "build/release/libconvsched.so"))
    parser.add_argument("--out", required=True, help="JSON lines; appended to")
    parser.add_argument("--cache-dir", default=None, help="convsched's profile cache")
    parser.add_argument("--device", default=None, help="default: cuda:0, or cpu with --cpu")
    parser.add_argument("--cpu", action="store_true", help="compare on the CPU")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each CPU contender")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", default=None, help="default: git rev-parse HEAD")
    parser.add_argument("--time-limit", type=float, default=0, help="seconds; begins no configuration after")
    options = parser.parse_args()
    options.dtypes = options.dtypes or (["f32"] if options.cpu else ["tf32", "f16"])
    if "sequential" not in options.policies:  # what speedups are against
        options.policies = ["sequential", *options.policies]
    options.device = options.device or ("cpu" if options.cpu else "cuda:0")
    return options


def note(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def graph_path(model):
    return model if model.endswith(".json") else str(records.ROOT / "models" / f"{model}.json")


def others(options, graph, params, batch, precision, inputs):
    """The other systems' contenders; a package that is not installed is said and left out."""
    if not options.cpu:
        import torch_peers
        return torch_peers.contenders(graph, params, precision, inputs)
    made = [OnnxRuntime(graph, params, batch, inputs, options.threads)]
    try:
        import torch_peers
        made.append(torch_peers.CpuEager(graph, params, inputs, options.threads))
    except ImportError:
        note("torch is not installed: torch.cpu is left out")
    return made


def reference(options, graph, params, inputs):
    """Float64 outputs and who computed them; (None, None) where torch is not installed."""
    try:
        import torch_peers
    except ImportError:
        return None, None
    return torch_peers.reference(graph, params, inputs, "cpu" if options.cpu else "cuda"), "torch float64"


def interleave(contenders, rounds, settle):
    """One sample of each in turn, another one first each round. A discarded sample before each
    gives everyone warm caches; `settle` seconds of rest let worker threads of others go to sleep."""
    samples = {id(c): [] for c in contenders}
    host = {id(c): [] for c in contenders}
    for index in range(-WARM_UP, rounds):
        first = index % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            time.sleep(settle)
            contender.sample()
            us, host_us = contender.sample(), contender.host_sample()
            if index >= 0:
                samples[id(contender)].append(us)
                if host_us is not None:
                    host[id(contender)].append(host_us)
    return samples, host


def entries(contenders, samples, host, wanted, precision):
    """Entries of `policies`; of two layouts of one system the faster, with the other's median."""
    best = {}
    for contender in contenders:
        entry = {"name": contender.name, "latency_us": records.statistics(samples[id(contender)]),
                 "measured": contender.how, **contender.details()}
        if host[id(contender)]:
            entry["host_us"] = records.statistics(host[id(contender)])
        if wanted is not None:
            entry["rel_l2_float64"] = records.rel_l2(contender.outputs(), wanted)
        if "verification" not in entry:
            error = entry.get("rel_l2_float64")
            limit = records.SANITY[precision]
            entry["verification"] = {"passed": error is None or error <= limit, "rel_l2": error,
                                     "max_scaled": None, "tolerance": limit}
        other = best.get(contender.name)
        if other:
            slower, entry = sorted((other, entry), key=lambda e: -e["latency_us"]["median"])
            entry["other_layout"] = {"layout": slower["layout"],
                                     "median": slower["latency_us"]["median"]}
        best[contender.name] = entry
    base = best["sequential"]["latency_us"]["median"]
    for entry in best.values():
        entry["speedup_vs_sequential"] = base / entry["latency_us"]["median"]
    return list(best.values())


def measure(options, library, device, name, precision, batch, work):
    path = graph_path(name)
    with library.load_graph(path) as graph:
        weights = os.path.join(work, f"{pathlib.Path(path).stem}-{options.seed}.safetensors")
        if not os.path.exists(weights):
            graph.write_generated_weights(options.seed, weights)
        described, params = graph_json.load(path), weights_file.read(weights)
        random = numpy.random.default_rng(options.seed)
        inputs = [numpy.ascontiguousarray(random.standard_normal(shape, numpy.float32))
                  for shape in graph.input_shapes(batch)]
        contenders = []
        try:
            for policy in options.policies:
                contenders.append(Convsched(device, graph, policy, batch, precision, inputs,
                                            weights_path=weights, cache_dir=options.cache_dir))
            ours = list(contenders)
            contenders += others(options, described, params, batch, precision, inputs)
            samples, host = interleave(contenders, options.rounds, 0.02 if options.cpu else 0)
            wanted, referee = reference(options, described, params, inputs)
            if wanted is None:  # no float64 at hand: at least the same function as the other system
                wanted, referee = contenders[len(ours)].outputs(), contenders[len(ours)].name
            policies = entries(contenders, samples, host, wanted, precision)
        finally:
            for contender in contenders:
                contender.close()
    sequential = next(p for p in policies if p["name"] == "sequential")
    return {
        "schema": "convsched.run/1", "model": pathlib.Path(path).stem, "batch": batch,
        "dtype": precision, "commit": records.commit(options.commit),
        "command": records.command_line(), "seed": options.seed,
        "graph_hash": sequential.pop("graph_hash", None), "device": device.info(),
        "host": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version(),
                 "convsched": library.version},
        "interleaved": {"rounds": options.rounds, "discarded_before_each": 1, "reference": referee},
        "policies": policies, "bounds": sequential.pop("bounds", None),
        "verification": {"passed": all(p["verification"]["passed"] for p in policies)},
        "timings_s": {**sequential.get("timings_s", {}), "first_result": sequential.pop("first_result_s")},
    }


def main():
    options = arguments()
    start = time.monotonic()
    library = convsched.Library(options.lib)
    failed = False
    with tempfile.TemporaryDirectory() as work, library.open_device(options.device) as device:
        for name in options.models:
            for precision in options.dtypes:
                for batch in map(int, options.batches):
                    if options.time_limit and time.monotonic() - start > options.time_limit:
                        note(f"time limit: {name} {precision} batch {batch} is left out")
                        continue
                    record = measure(options, library, device, name, precision, batch, work)
                    records.append(options.out, record)
                    failed = failed or not record["verification"]["passed"]
                    note(f"{name} {precision} batch {batch}: " + ", ".join(
                        f"{p['name']} {p['latency_us']['median']:.0f}" for p in record["policies"]) + " us")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
