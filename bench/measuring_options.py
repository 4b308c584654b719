"""Options that the measuring commands share: each refuses what it cannot mean before anything is measured."""
import argparse
import math
import os
import pathlib

import cell_loop
import cell_table
import convsched
import model_files
import peer_list
import records


def split(text):
    return [t for t in text.split(",") if t]


def whole(least):
    """A type: whole numbers of 64 bits, at least `least`."""
    def parse(text):
        try:
            found = int(text)
        except ValueError:
            found = None
        if found is None or not least <= found < 2 ** 63:
            raise argparse.ArgumentTypeError(f"found {text}, wanted a whole number, at least {least}")
        return found
    return parse


def wholes(text):
    return [whole(1)(part) for part in split(text)]


def seconds(text):
    """Of a window."""
    found = number(text)
    if not 0 < found < 3600:
        raise argparse.ArgumentTypeError(f"found {text}, wanted seconds, more than 0 and less than 3600")
    return found


def limit(text):
    """Seconds, or 0."""
    found = number(text)
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"found {text}, wanted seconds, 0 or more")
    return found


def number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan


def cells(text):
    """MODEL/DTYPE/BATCH,…"""
    found = []
    for part in split(text):
        try:
            found.append(cell_table.parse_cell(part))
        except ValueError:
            raise argparse.ArgumentTypeError(f"found {part}, wanted MODEL/DTYPE/BATCH") from None
    if not found:
        raise argparse.ArgumentTypeError("found none, wanted MODEL/DTYPE/BATCH,…")
    return found


def add_shared(parser):
    """What is measured, with what, where it is kept and for how long."""
    parser.add_argument("--done", nargs="*", default=[], metavar="FILE", help="records of configurations to skip")
    parser.add_argument("--most", type=whole(1), default=None, metavar="N", help="at most N configurations")
    parser.add_argument("--layouts", type=split, default=list(peer_list.LAYOUTS),
                        help=f"of the peers ({','.join(peer_list.LAYOUTS)})")
    parser.add_argument("--prepare-seconds", type=limit, default=0, metavar="S",
                        help="leave out a peer that takes longer to prepare (0: no limit)")
    parser.add_argument("--search-seconds", type=limit, default=None, metavar="S", help="of coselect's search")
    parser.add_argument("--lib", default=str(records.ROOT / "build/release/libconvsched.so"))
    parser.add_argument("--out", required=True, help="JSON lines; appended to")
    parser.add_argument("--cache-dir", default=None, help="convsched's profile cache")
    parser.add_argument("--device", default=None, help="default: cuda:0, or cpu with --cpu")
    parser.add_argument("--cpu", action="store_true", help="compare on the CPU")
    parser.add_argument("--threads", type=whole(1), default=os.cpu_count(), help="of each CPU contender")
    parser.add_argument("--seed", type=whole(0), default=0)
    parser.add_argument("--commit", default=None, help="default: git rev-parse HEAD")
    parser.add_argument("--time-limit", type=limit, default=0, help="seconds; begins no configuration after")


def check_known(options, peers, refuse):
    """That there are such peers and layouts."""
    for what, found, wanted in (("--peers", options.peers, peers), ("--layouts", options.layouts, peer_list.LAYOUTS)):
        unknown = [name for name in found if name not in wanted]
        if unknown:
            refuse(f"{what}: found {unknown[0]}, wanted some of {','.join(wanted)}")


def check_cells(listed, on_cpu, refuse):
    """Contenders on the CPU compute in f32, whatever the precision."""
    for model, precision, batch in listed:
        name = cell_table.cell_name((model, precision, batch))
        if precision not in convsched.PRECISIONS:
            refuse(f"{name}: found {precision}, wanted one of {','.join(convsched.PRECISIONS)}")
        if on_cpu and precision != "f32":
            refuse(f"{name}: found {precision}, wanted f32 with --cpu")
        if not 1 <= batch < 2 ** 63:
            refuse(f"{name}: found batch {batch}, wanted at least 1")
        if not os.path.exists(model_files.graph_path(model)):
            refuse(f"{name}: no file {model_files.graph_path(model)}")


def check_files(options, schema, refuse):
    """Before anything is measured, that what is measured can be kept."""
    if not os.path.exists(options.lib):
        refuse(f"--lib: no file {options.lib}")
    out = pathlib.Path(options.out).resolve()
    if not out.parent.is_dir():
        refuse(f"--out: no folder {out.parent}")
    if not os.access(out if out.exists() else out.parent, os.W_OK) or out.is_dir():
        refuse(f"--out: {options.out} cannot be written")
    for path in options.done:
        try:
            cell_loop.left_to_do([], [path], None, schema)
        except (OSError, ValueError, KeyError, AttributeError) as error:
            refuse(f"--done: {path}: found no records of configurations: {error}")
