#!/usr/bin/env python3
"""Measures how many images a second convsched computes with several requests in flight, beside PyTorch, in one process,
interleaved, on the same weights and inputs, and writes convsched.throughput/1 records. On both sides every request's
inputs are copied in from host memory and its outputs out to it, in the precision's own type.

PyTorch's contenders (a GPU's): a CUDA graph for each request in flight, replayed on a stream of its own (of one stream, of a
stream per branch, of torch.compile's kernels), torch.compile's mode reduce-overhead, and the eager mode with a stream for each; all
in NCHW and in channels-last. With --cpu: a thread for each request in flight. What is not installed is left out.

Outputs of all, with as many requests in flight as there may be, are compared with float64. All are screened with each number
of requests in flight, in a few short windows; the --finalists best of convsched's and of PyTorch's then take --rounds windows in turn,
and joules an image of the best of each side are read from the board's counter (NVML) in longer windows.

    bench/throughput.py --lib build/release/libconvsched.so --cells googlenet_bn/f16/1,googlenet_bn/f16/32 \\
                        --search-seconds 5 --prepare-seconds 60 --out bench/results/NAME-throughput.jsonl

No configuration is begun after --time-limit, nor one that would not end by then if it took as long as the longest before it.
Exit: 0 ok, 1 wrong results or a configuration that failed, 2 usage.
"""
import argparse
import os
import pathlib
import platform
import sys
import tempfile

import cell_loop
import cell_table
import convsched
import measuring_options as measuring
import model_files
import peer_list
import records
import throughput_list
import throughput_ratio
from in_flight import Convsched
from peer_ratio import is_peer
from throughput_race import Race, best

LEAST_ROUNDS = 50
MOST_IN_FLIGHT = 16  # CS_PIPELINE_MOST_SLOTS
# Of inputs; slots take them in turn, so that a result in a neighbour's place is told from the right one.
DISTINCT = 4


# ---- Options ----

def numbers_in_flight(text):
    """Ascending, each once."""
    try:
        found = sorted({int(part) for part in measuring.split(text)})
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text}, wanted numbers joined by ','") from None
    if not found or found[0] < 1 or found[-1] > MOST_IN_FLIGHT:
        raise argparse.ArgumentTypeError(f"found {text}, wanted numbers from 1 to {MOST_IN_FLIGHT}")
    return found


def planned(name):
    """The policy and the requests in flight that POLICY[:N] plans for; ValueError: neither form."""
    policy, colon, number = name.partition(":")
    planned_for = int(number) if colon else 0
    if not policy or not 0 <= planned_for <= MOST_IN_FLIGHT:
        raise ValueError(name)
    return policy, planned_for


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    made.add_argument("--cells", type=measuring.cells, required=True, metavar="CELL,…", help="MODEL/DTYPE/BATCH: these, in this order")
    made.add_argument("--in-flight", type=numbers_in_flight, default=[1, 2, 4, 8], metavar="N,…", help="default: 1,2,4,8")
    made.add_argument("--policies", type=measuring.split, default=None,
                      help="POLICY[:N],…: planned for N requests in flight, where told; default: sequential,streams,coselect, on a GPU coselect:8 too")
    made.add_argument("--peers", type=measuring.split, default=None,
                      help=f"default: all on a GPU ({','.join(throughput_list.GPU)}); {','.join(throughput_list.CPU)} with --cpu")
    made.add_argument("--screen-rounds", type=measuring.whole(1), default=3, metavar="N", help="windows of each contender and number in flight")
    made.add_argument("--screen-seconds", type=measuring.seconds, default=0.03, metavar="S", help="of each of them")
    made.add_argument("--finalists", type=measuring.whole(1), default=3, metavar="N", help="of each side")
    made.add_argument("--rounds", type=measuring.whole(LEAST_ROUNDS), default=50, help="windows of each finalist")
    made.add_argument("--window-seconds", type=measuring.seconds, default=0.1, metavar="S", help="of each of them")
    made.add_argument("--energy-rounds", type=measuring.whole(0), default=5, metavar="N", help="windows of the best of each side (0: none)")
    made.add_argument("--energy-seconds", type=measuring.seconds, default=1, metavar="S", help="of each of them")
    measuring.add_shared(made)
    made.set_defaults(layouts=["nhwc", "nchw"])
    return made


def check(options, refuse):
    measuring.check_known(options, known_peers(options), refuse)
    if not options.policies:
        refuse("--policies: found none, wanted at least one")
    for name in options.policies:
        try:
            planned(name)
        except ValueError:
            refuse(f"--policies: found {name}, wanted POLICY or POLICY:N with N to {MOST_IN_FLIGHT}")
    measuring.check_cells(options.cells, options.cpu, lambda told: refuse(f"--cells: {told}"))
    measuring.check_files(options, throughput_ratio.SCHEMA, refuse)


def known_peers(options):
    return throughput_list.CPU if options.cpu else throughput_list.GPU


def arguments():
    made = parser()
    options = made.parse_args()
    options.device = options.device or ("cpu" if options.cpu else "cuda:0")
    if options.peers is None:
        options.peers = list(known_peers(options))
    if options.policies is None:  # a CPU has no requests in flight to plan for
        options.policies = ["sequential", "streams", "coselect"] + ([] if options.cpu else ["coselect:8"])
    check(options, made.error)
    return options


def note(text):
    print(f"throughput: {text}", file=sys.stderr, flush=True)


# ---- A configuration ----

def judged(contender, wanted, precision):
    """The contender's verification and details: its outputs of every slot against float64, convsched's own checks beside."""
    details = contender.details()
    own = details.pop("verification", {"passed": True})
    error, limit = None, records.SANITY[precision]
    if wanted:
        error = max(records.rel_l2(found, wanted[slot % len(wanted)]) for slot, found in enumerate(contender.outputs()))
    right = error is None or error <= limit
    return {**details, "rel_l2_float64": error if error is None or error < float("inf") else None,
            "verification": {**own, "passed": own["passed"] and right, "limit_float64": limit, "slots": contender.slots}}


def statistics(rates):
    host = sorted(rate.host_images_per_s for rate in rates)
    return {"requests": rates[0].requests, "images_per_s": records.statistics([rate.images_per_s for rate in rates]),
            "host_images_per_s": host[len(host) // 2]}


def entry(contender, points, details):
    """A member of `contenders`."""
    rates = [{"in_flight": p.in_flight, "screening": statistics(p.screening), "final": statistics(p.final) if p.final else None,
              "joules_per_image": records.statistics(p.joules) if p.joules else None} for p in points]
    return {"name": contender.name, "how": contender.how, "first_result_s": contender.first_result_s, **details, "rates": rates}


def no_energy(device):
    """Why there are no joules; None: there are."""
    try:
        device.energy()
    except convsched.Error as error:
        return str(error)
    return None


def race(options, device, contenders, details_of, give_up):
    """Points of all that got through; `details_of(contender)` is asked for before the finals, which only right ones run."""
    run = Race(contenders, options.in_flight, 0.02 if options.cpu else 0, give_up)
    run.screen(options.screen_rounds, options.screen_seconds)
    details = {}
    for contender in contenders:
        run.judge(contender, lambda c: details.update({id(c): details_of(c)}))
    right = [p for p in run.points if details[id(p.contender)]["verification"]["passed"]]
    sides = [[p for p in right if is_peer({"name": p.contender.name}) == peers] for peers in (False, True)]
    run.finish([p for side in sides for p in best(side, options.finalists)], options.rounds, options.window_seconds)
    if options.energy_rounds and not no_energy(device):
        winners = [p for side in sides for p in best([p for p in side if p in run.points], 1, lambda p: p.final)]
        run.weigh(winners, options.energy_rounds, options.energy_seconds, device.energy)
    kept = [c for c in contenders if any(p.contender is c for p in run.points)]
    return [entry(c, [p for p in run.points if p.contender is c], details[id(c)]) for c in kept]


def compare(options, device, graph, path, weights, cell):
    """(contenders, left out, who computed what errors are against)."""
    _, precision, batch = cell
    described, params = model_files.described(path, weights)
    distinct = [model_files.random_inputs(graph, batch, options.seed + i) for i in range(min(DISTINCT, options.in_flight[-1]))]
    inputs = [distinct[slot % len(distinct)] for slot in range(options.in_flight[-1])]
    search = {} if options.search_seconds is None else {"search_seconds": options.search_seconds}
    contenders = []
    try:
        for name in options.policies:
            policy, planned_for = planned(name)
            contenders.append(Convsched(device, graph, policy, batch, precision, inputs, name=name, weights_path=weights,
                                        cache_dir=options.cache_dir, in_flight=planned_for, **search))
        others, left_out = peer_list.make(known_peers(options), options.peers, options.layouts,
                                          (described, params, precision, inputs),
                                          model_files.others(graph, weights, options.threads),
                                          options.prepare_seconds, note)
        contenders += others
        wanted = [model_files.reference(described, params, given, options.cpu) for given in distinct]
        outputs, referee = [found for found, _ in wanted if found], wanted[0][1]

        def give_up(contender, error):
            if contender not in others:
                raise error
            left_out.append(peer_list.left_out(contender.name, contender.layout, error, note))

        return race(options, device, contenders, lambda c: judged(c, outputs, precision), give_up), left_out, referee
    finally:
        for contender in contenders:
            contender.close()


def measure(options, library, device, cell, work):
    path = model_files.graph_path(cell[0])
    with library.load_graph(path) as graph:
        weights = model_files.weights_of(graph, path, options.seed, work)
        contenders, left_out, referee = compare(options, device, graph, path, weights, cell)
    return {
        "schema": throughput_ratio.SCHEMA, "model": pathlib.Path(path).stem, "dtype": cell[1], "batch": cell[2],
        "commit": records.commit(options.commit), "command": records.command_line(), "seed": options.seed,
        "graph_hash": contenders[0].get("graph_hash"), "device": device.info(),
        "host": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version(),
                 "convsched": library.version},
        "windows": {"screening": {"rounds": options.screen_rounds, "seconds": options.screen_seconds},
                    "final": {"rounds": options.rounds, "seconds": options.window_seconds, "finalists": options.finalists},
                    "energy": {"rounds": options.energy_rounds, "seconds": options.energy_seconds}},
        "reference": referee, "contenders": contenders, "left_out": left_out,
        "no_joules": no_energy(device) if options.energy_rounds else "not asked for (--energy-rounds 0)",
        "verification": {"passed": all(c["verification"]["passed"] for c in contenders)},
    }


def say_result(cell, record, took):
    found = throughput_ratio.of(record)
    told = [f"{best.contender['name']} {best.images_per_s:.0f} images/s with {best.rate['in_flight']} in flight"
            + (f", {best.joules:.4g} J/image" if best.joules else "") for best in (found.ours, found.peer) if best]
    note(f"{cell_table.cell_name(cell)}, {took:.0f} s: " + "; ".join(told)
         + (f"; ratio {found.ratio:.2f}" if found.ratio else ""))


def main():
    options = arguments()
    try:
        library = convsched.Library(options.lib)
        device = library.open_device(options.device)
    except (OSError, convsched.Error) as error:
        note(str(error))
        return 2
    with tempfile.TemporaryDirectory() as work, device:
        left = cell_loop.left_to_do(options.cells, options.done, options.most, throughput_ratio.SCHEMA)
        good = cell_loop.run(left, lambda *cell: measure(options, library, device, cell, work), options.out,
                             options.time_limit, note, say_result)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
