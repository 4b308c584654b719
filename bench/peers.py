#!/usr/bin/env python3
"""Measures convsched beside other systems, in one process, interleaved: one latency sample of each
contender in turn, on the same weights and the same input, and writes convsched.run/1 records.

On a GPU the others are PyTorch (eager, a CUDA graph, a CUDA graph with a stream per branch, torch.compile
with the input given afresh and lying still) and XLA by JAX, each in NCHW and in channels-last; the better
layout is kept. With --cpu they are ONNX Runtime, PyTorch and XLA. What is not installed is left out.
Outputs of all are compared with float64.

    bench/peers.py --lib build/release/libconvsched.so --models googlenet --dtypes tf32,f16 \\
                   --batches 1,32 --policies streams,coselect --search-seconds 20 --out bench/results/NAME-peers.jsonl
    bench/peers.py --cells googlenet/f16/32,resnet50/tf32/1 --peers cudagraph_streams,compile --time-limit 500 --out …

No configuration is begun after --time-limit, nor one that would not end by then if it took as long as the
longest before it. Exit: 0 ok, 1 wrong results or a configuration that failed, 2 usage.
"""
import argparse
import os
import pathlib
import platform
import sys
import tempfile
import time

import cell_loop
import cell_table
import convsched
import max_autotune
import measuring_options as measuring
import model_files
import peer_entries
import peer_list
import peer_ratio
import records
from contenders import Convsched

WARM_UP = 5
LEAST_ROUNDS = 50


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=measuring.split, default=["googlenet"], help="names under models/, or paths")
    parser.add_argument("--dtypes", type=measuring.split, default=None, help="default: f32 with --cpu, else tf32,f16")
    parser.add_argument("--batches", type=measuring.wholes, default=[1])
    parser.add_argument("--cells", type=measuring.cells, default=None, metavar="CELL,…",
                        help="MODEL/DTYPE/BATCH: these, in this order, instead of models × dtypes × batches")
    parser.add_argument("--peers", type=measuring.split, default=None,
                        help=f"default: all on a GPU ({','.join(peer_list.GPU)}); onnxruntime,eager with --cpu\n"
                             f"(of {','.join(peer_list.CPU)})")
    parser.add_argument("--max-autotune", type=measuring.limit, default=0, metavar="S",
                        help="also torch.compile's max-autotune, in a process ended after S seconds; outside the ratio")
    parser.add_argument("--policies", type=measuring.split, default=["sequential", "streams"])
    parser.add_argument("--rounds", type=measuring.whole(LEAST_ROUNDS), default=50, help="samples of each contender")
    measuring.add_shared(parser)
    options = parser.parse_args()
    options.dtypes = options.dtypes or (["f32"] if options.cpu else ["tf32", "f16"])
    if "sequential" not in options.policies:  # what speedups are against
        options.policies = ["sequential", *options.policies]
    options.device = options.device or ("cpu" if options.cpu else "cuda:0")
    known = peer_list.CPU if options.cpu else peer_list.GPU
    options.peers = options.peers if options.peers is not None else (
        ["onnxruntime", "eager"] if options.cpu else list(known))
    measuring.check_known(options, known, parser.error)
    if options.max_autotune and options.cpu:
        parser.error("--max-autotune: not with --cpu")
    if not options.cells:
        options.cells = [(m, d, b) for m in options.models for d in options.dtypes for b in options.batches]
    if not options.cells:
        parser.error("--models, --batches: found none, wanted at least one of each")
    measuring.check_cells(options.cells, options.cpu, parser.error)
    measuring.check_files(options, records.RUN, parser.error)
    return options


def note(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def interleave(contenders, rounds, settle, give_up):
    """{id: (samples, host samples)}: one of each in turn, another one first each round. A discarded sample
    before each gives everyone warm caches; `settle` seconds of rest let worker threads of others go to sleep.
    A contender that raises is out of the race if `give_up(contender, error)` returns."""
    taken = {id(c): ([], []) for c in contenders}
    for index in range(-WARM_UP, rounds):
        first = index % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            if id(contender) not in taken:
                continue
            time.sleep(settle)
            try:
                contender.sample()
                found = contender.sample(), contender.host_sample()
            except Exception as error:  # whatever a system may raise
                give_up(contender, error)
                del taken[id(contender)]
                continue
            if index >= 0:
                for samples, us in zip(taken[id(contender)], found):
                    if us is not None:
                        samples.append(us)
    return taken


def measure(options, library, device, name, precision, batch, work):
    path = model_files.graph_path(name)
    with library.load_graph(path) as graph:
        weights = model_files.weights_of(graph, path, options.seed, work)
        described, params = model_files.described(path, weights)
        inputs = model_files.random_inputs(graph, batch, options.seed)
        search = {} if options.search_seconds is None else {"search_seconds": options.search_seconds}
        contenders = []
        try:
            for policy in options.policies:
                contenders.append(Convsched(device, graph, policy, batch, precision, inputs,
                                            weights_path=weights, cache_dir=options.cache_dir, **search))
            others, left_out = peer_list.make(peer_list.CPU if options.cpu else peer_list.GPU, options.peers,
                                              options.layouts, (described, params, precision, inputs),
                                              model_files.others(graph, weights, options.threads),
                                              options.prepare_seconds, note)
            contenders += others

            def give_up(contender, error):
                if contender not in others:
                    raise error
                left_out.append(peer_list.left_out(contender.name, getattr(contender, "layout", None), error,
                                                   note))

            taken = interleave(contenders, options.rounds, 0.02 if options.cpu else 0, give_up)
            kept = [contender for contender in contenders if id(contender) in taken]
            wanted, referee = model_files.reference(described, params, inputs, options.cpu)
            other = next((contender for contender in kept if contender in others), None)
            if wanted is None and other:  # no float64 at hand: at least the same function as another system
                wanted, referee = other.outputs(), other.name
            policies = [peer_entries.entry(c, *taken[id(c)], wanted, precision) for c in kept]
        finally:
            for contender in contenders:
                contender.close()
        if options.max_autotune:
            more, missing = max_autotune.beside(path, weights, inputs, wanted, precision, options.layouts,
                                                options.rounds, options.max_autotune)
            policies += more
            left_out += missing
        policies = peer_entries.better(policies)
    sequential = next(p for p in policies if p["name"] == "sequential")
    return {
        "schema": "convsched.run/1", "model": pathlib.Path(path).stem, "batch": batch,
        "dtype": precision, "commit": records.commit(options.commit),
        "command": records.command_line(), "seed": options.seed,
        "graph_hash": sequential.pop("graph_hash", None), "device": device.info(),
        "host": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version(),
                 "convsched": library.version},
        "interleaved": {"rounds": options.rounds, "discarded_before_each": 1, "reference": referee},
        "policies": policies, "left_out": left_out, "bounds": sequential.pop("bounds", None),
        "verification": {"passed": all(p["verification"]["passed"] for p in policies)},
        "timings_s": {**sequential.get("timings_s", {}), "first_result": sequential["first_result_s"]},
    }


def say_result(cell, record, seconds):
    found = peer_ratio.of(record)
    note(f"{cell_table.cell_name(cell)}, {seconds:.0f} s: " + ", ".join(
        f"{p['name']} {p['latency_us']['median']:.0f}" for p in record["policies"]) + " us" + (
            f"; {found.peer['name']} over {found.ours['name']} {found.ratio:.2f}" if found.ratio else ""))


def main():
    options = arguments()
    try:
        library = convsched.Library(options.lib)
        device = library.open_device(options.device)
    except (OSError, convsched.Error) as error:
        note(str(error))
        return 2
    with tempfile.TemporaryDirectory() as work, device:
        left = cell_loop.left_to_do(options.cells, options.done, options.most)
        good = cell_loop.run(left, lambda *cell: measure(options, library, device, *cell, work), options.out,
                             options.time_limit, note, say_result)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
