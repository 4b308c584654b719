#!/usr/bin/env python3
"""Records all policies beside one another for a list of cells (model, dtype, batch): one
`convsched run MODEL --policy all` each, in a process of its own, appended to --out as one JSON line
(convsched.run/1) as soon as it has ended. Cells that --out or a file of --done holds are skipped.
A table is printed last.

    bench/cells.py --out bench/results/NAME-coselect.jsonl --first googlenet_bn/f16/8 --deadline-s 500
    bench/cells.py --device cpu --dtypes f32 --models squeezenet1_1 --batches 1 --search-seconds 2 --out /tmp/x.jsonl
    bench/cells.py --device sim:FILE --dtypes f16 --batches 32 --out /tmp/x.jsonl

Exit: 0 every cell begun has ended and is right, 1 not so (the cells say what), 2 usage, 130 interrupted.
"""
import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import cell_table
import records

LEAST_SAMPLES = 50
GRACE_S = 15  # from SIGINT to SIGKILL: the command writes what it has measured
AXES = ("model", "dtype", "batch")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    split = lambda text: [t for t in text.split(",") if t]
    cells = lambda text: [cell_table.parse_cell(t) for t in split(text)]
    parser.add_argument("--models", type=split, default=cell_table.MODELS, help="names under models/, or paths")
    parser.add_argument("--dtypes", type=split, default=cell_table.DTYPES)
    parser.add_argument("--batches", type=lambda t: [int(b) for b in split(t)], default=cell_table.BATCHES)
    parser.add_argument("--order", type=split, default=["batch", "dtype", "model"],
                        help="which of model, dtype and batch changes last, …, first (default batch,dtype,model)")
    parser.add_argument("--first", type=cells, default=[], metavar="CELL,…",
                        help="MODEL/DTYPE/BATCH: cells that come before the others")
    parser.add_argument("--command", default=str(records.ROOT / "build/release/convsched"))
    parser.add_argument("--device", default=None, help="of the command (default: its own)")
    parser.add_argument("--search-seconds", type=float, default=20)
    parser.add_argument("--samples", type=int, default=LEAST_SAMPLES, help="of each policy")
    parser.add_argument("--more", type=shlex.split, default=[], metavar="'OPTIONS'",
                        help="further options of `convsched run`, as '--ablate --verify none'")
    parser.add_argument("--cache", default=None, metavar="FOLDER", help="XDG_CACHE_HOME of the command")
    parser.add_argument("--out", required=True, help="JSON lines; appended to")
    parser.add_argument("--done", nargs="*", default=[], metavar="FILE", help="records of cells to skip")
    parser.add_argument("--log", default=None, metavar="FILE", help="what the command says; appended to")
    parser.add_argument("--deadline-s", type=float, default=float("inf"), metavar="S",
                        help="seconds: no cell is begun that could not end by then, a running one is interrupted")
    parser.add_argument("--overhead-s", type=float, default=15, metavar="S",
                        help="guess of what the first cell takes besides its search (default 15)")
    options = parser.parse_args()
    if sorted(options.order) != sorted(AXES):
        parser.error(f"--order {','.join(options.order)}: found other names, wanted each of {', '.join(AXES)} once")
    if options.samples < LEAST_SAMPLES:
        parser.error(f"--samples {options.samples}: found too few, wanted at least {LEAST_SAMPLES}")
    return options


class Refused(Exception):
    """What was asked for cannot be begun."""


def cells_of(options):
    """All cells, those of --first at the front, the others in the order of the axes."""
    listed = [(m, d, b) for m in options.models for d in options.dtypes for b in options.batches]
    values = (list(options.models), list(options.dtypes), list(options.batches))
    key = lambda cell: [values[AXES.index(axis)].index(cell[AXES.index(axis)]) for axis in options.order]
    return list(dict.fromkeys(options.first + sorted(listed, key=key)))


def recorded(paths):
    """Records of the cells of which the files hold all policies."""
    found = {}
    for path in paths:
        try:
            found.update((cell_table.cell_of(record), record) for record in records.read(path)
                         if cell_table.is_complete(record))
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise Refused(f"{path}: no records of runs: {type(error).__name__}: {error}") from error
    return found


def check_files(options):
    """Before anything is measured: models are there, and --out can be written."""
    for model in {cell[0] for cell in cells_of(options)}:
        if not model_path(model).is_file():
            raise Refused(f"model {model}: no file {model_path(model)}")
    try:
        with open(options.out, "ab"):
            pass
    except OSError as error:
        raise Refused(f"--out: {error}") from error


def model_name(model):
    """As records have it."""
    return json.loads(model_path(model).read_text(encoding="utf-8"))["name"] if model.endswith(".json") else model


def model_path(model):
    return pathlib.Path(model) if model.endswith(".json") else records.ROOT / "models" / f"{model}.json"


class Session:
    """Runs cells one after the other until the deadline or an interrupt."""

    def __init__(self, options):
        self.options = options
        self.begun = time.monotonic()
        self.overheads = {}  # of cells that ended: seconds besides the search
        self.child = None
        self.interrupted = False  # by a signal
        self.was_stopped = False  # the command of a cell was
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.interrupt)

    def interrupt(self, *_):
        self.interrupted = True
        self.stop_child()

    def stop_child(self):
        if self.child and self.child.poll() is None:
            self.was_stopped = True
            self.child.send_signal(signal.SIGINT)

    def left(self):
        return self.options.deadline_s - (time.monotonic() - self.begun)

    def estimate(self, cell):
        """Seconds: the search and what cells before took besides theirs, those of the model where there are any."""
        same = [s for other, s in self.overheads.items() if other[0] == cell[0] and other[2] >= cell[2]]
        return self.search_seconds() + max(same or list(self.overheads.values()) or [self.options.overhead_s])

    def search_seconds(self):
        return 0 if self.is_simulated() else self.options.search_seconds

    def is_simulated(self):
        return (self.options.device or "").startswith("sim:")

    def command(self, cell, path):
        options = self.options
        line = [options.command, "run", str(model_path(cell[0])), "--dtype", cell[1], "--batch", str(cell[2]),
                "--policy", "all", "--samples", str(options.samples), "--json", path]
        if options.device:
            line += ["--device", options.device]
        if not self.is_simulated():  # which searches nothing
            line += ["--search-seconds", f"{options.search_seconds:g}"]
        return line + options.more

    def wait(self):
        """Until the command has ended; from the deadline on it is interrupted, and killed when that does not help."""
        try:
            self.child.wait(max(0, self.left()) if self.options.deadline_s < float("inf") else None)
        except subprocess.TimeoutExpired:
            self.stop_child()
            try:
                self.child.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        return self.child.returncode

    def run(self, cell, log):
        """The record, or None, and the exit code."""
        environment = dict(os.environ)
        if self.options.cache:
            environment["XDG_CACHE_HOME"] = str(pathlib.Path(self.options.cache).resolve())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "record.json")
            began = time.monotonic()
            # In a session of its own: a Ctrl-C of the terminal reaches it through us, once.
            self.child = subprocess.Popen(self.command(cell, path), stdout=log, stderr=log, env=environment,
                                          start_new_session=True)
            if self.interrupted:
                self.stop_child()
            code = self.wait()
            seconds = time.monotonic() - began
            found = records.read(path) if os.path.exists(path) and os.path.getsize(path) else []
        if found:
            self.overheads[cell] = max(0, seconds - self.search_seconds())
        return (found[0] if found else None), code, seconds


def note(text):
    print(f"cells: {text}", file=sys.stderr, flush=True)


def table(found):
    """Lines: each policy's latency and how many times as fast coselect is as the others."""
    rows = [("cell", *cell_table.POLICIES, "/best other", "/sequential", "")]
    for record in found:
        us, gains = cell_table.latencies(record), cell_table.gains(record)
        rows.append((cell_table.cell_name(cell_table.cell_of(record)),
                     *(f"{us[name]:.1f}" for name in cell_table.POLICIES),
                     f"{gains['best other']:.3f}", f"{gains['sequential']:.3f}",
                     " ".join(filter(None, ("" if cell_table.verdict(record) != "WRONG" else "WRONG",
                                            "predicted" if record.get("predicted") else "")))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [" ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]).rstrip()
            for row in rows]


def without(done, cells):
    return [cell for cell in cells if (model_name(cell[0]), *cell[1:]) not in done]


def run_all(session, cells, done, log):
    """The cells that failed, each with a sentence, and those that were not begun or did not end."""
    options, failed = session.options, []
    for index, cell in enumerate(cells):
        name = cell_table.cell_name(cell)
        if not without(done, [cell]):
            note(f"{name}: recorded already")
            continue
        if session.interrupted or session.estimate(cell) > session.left():
            return failed, without(done, cells[index:])
        log.write(f"== {name}\n".encode())
        record, code, seconds = session.run(cell, log)
        if record:
            records.append(options.out, record)
        if record and cell_table.is_complete(record):
            done[cell_table.cell_of(record)] = record
        elif record:
            failed.append((name, f"a record without all of {', '.join(cell_table.POLICIES)}"))
        if session.was_stopped:
            note(f"{name}: ended after {seconds:.0f} s; what was measured is in the cache")
            return failed, without(done, cells[index:])
        if code != 0:
            failed.append((name, f"exit code {code} after {seconds:.0f} s"))
        note(f"{name}: {seconds:.0f} s" + (f", exit code {code}" if code else ""))
    return failed, []


def main():
    options = arguments()
    session = Session(options)
    cells = cells_of(options)
    try:
        done = recorded(options.done + ([options.out] if os.path.exists(options.out) else []))
        check_files(options)
    except Refused as refused:
        print(f"cells: {refused}", file=sys.stderr)
        return 2
    before = set(done)
    with open(options.log or os.devnull, "ab", buffering=0) as log:
        failed, left_out = run_all(session, cells, done, log)
    made = [record for cell, record in done.items() if cell not in before]
    print("\n".join(table(made)))
    for name, what in failed:
        print(f"{name}: {what}")
    if left_out:
        print(f"{len(left_out)} left out ({'interrupted' if session.interrupted else 'deadline'}): "
              + ", ".join(map(cell_table.cell_name, left_out)))
    if session.interrupted:
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
