#!/usr/bin/env python3
"""torch.compile with max-autotune, in a process of its own, so that it can be given up: its compiler tries
kernels for minutes. bench/peers.py starts it; a line (an entry of `policies`) is written for each layout that
has ended.

    bench/max_autotune.py GRAPH WEIGHTS ARRAYS.npz DTYPE LAYOUTS ROUNDS OUT.jsonl
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy

import peer_entries
import records
import graph_json
import weights_file

NAME = "torch.compile_max_autotune"


def work(graph, weights, arrays, precision, layouts, rounds, out):
    from torch_compile import MaxAutotune
    stored = numpy.load(arrays)
    group = lambda what: [stored[key] for key in sorted(stored.files) if key.startswith(what)]
    for layout in layouts.split(","):
        contender = MaxAutotune(graph_json.load(graph), weights_file.read(weights), precision, group("input"), layout)
        samples = []
        for _ in range(int(rounds)):
            contender.sample()  # warm caches, as the others have
            samples.append(contender.sample())
        entry = peer_entries.entry(contender, samples, None, group("wanted") or None, precision)
        records.append(out, {**entry, "outside_ratio": True, "interleaved": False})


def beside(graph, weights, inputs, wanted, precision, layouts, rounds, seconds):
    """(entries, left out) of a process that is ended after `seconds`."""
    with tempfile.TemporaryDirectory() as folder:
        arrays, out = os.path.join(folder, "arrays.npz"), os.path.join(folder, "out.jsonl")
        numpy.savez(arrays, **{f"input{i:03}": x for i, x in enumerate(inputs)},
                    **{f"wanted{i:03}": y for i, y in enumerate(wanted or [])})
        process = subprocess.Popen([sys.executable, __file__, graph, weights, arrays, precision, ",".join(layouts),
                                    str(rounds), out], start_new_session=True, stderr=subprocess.PIPE, text=True)
        try:
            _, errors = process.communicate(timeout=seconds)
            reason = (errors.strip().splitlines() or ["ended"])[-1][:300] if process.returncode else None
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compiler's workers
            process.communicate()
            reason = f"not compiled and measured in {seconds:g} s"
        entries = records.read(out) if pathlib.Path(out).exists() else []
    missing = [layout for layout in layouts if layout not in [entry["layout"] for entry in entries]]
    return entries, [{"name": NAME, "layout": layout, "reason": reason or "no result"}
                     for layout in missing]


if __name__ == "__main__":
    work(*sys.argv[1:])
