"""Options that the measuring commands share: each refuses what it cannot mean before anything is measured."""
import argparse
import math
import os
import pathlib

import cell_loop
import cell_table
import convsched
import model_files


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
