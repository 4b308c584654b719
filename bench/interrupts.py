#!/usr/bin/env python3
"""How soon Ctrl-C ends the command, and what it leaves: for each case one command of convsched is started on a terminal of
its own, and Ctrl-C is pressed a time after its start or after a stage of its line of progress has begun. Its record, one
JSON line (convsched.interrupts/1), is appended to --out: seconds until the process had ended, exit code, last line, processes
and unfinished files that were left, what the profile database got, and whether what was complete in it was measured again.
A table is printed last.

    bench/interrupts.py --device cuda:0 --cache FOLDER --out bench/results/verification/NAME-interrupts.jsonl
    bench/interrupts.py --device cpu --cases profile,search --deadline-s 120 --out /tmp/x.jsonl   # smaller networks
    bench/interrupts.py --table bench/results/verification/NAME-interrupts.jsonl

Exit: 0 every case was interrupted and ended as it should, 1 not so (the table says what), 2 usage.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import convsched
import records
from interrupt_list import KNOWN, NAMES, SIZES, all_cases, write_experiment

sys.path.append(str(records.ROOT / "tests/cli"))
from terminal import Terminal

SCHEMA = "convsched.interrupts/1"
WITHIN_S = 0.5   # what is promised of a machine with nothing else to do
HUNG_S = 20      # a process that lives then is ended
INTERRUPTED = 130
CTRL_C = b"\x03"
SPARE_S = 5      # of a case, besides the time until the key
REACHES_S = 7    # a guess of how long a case takes to reach its stage


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=lambda text: [c.strip() for c in text.split(",") if c.strip()], default=NAMES,
                        metavar="NAME,…", help=f"default, all: {', '.join(dict.fromkeys(NAMES))}")
    parser.add_argument("--command", default=str(records.ROOT / "build/release/convsched"))
    parser.add_argument("--library", default=None, help="tells the device (default: libconvsched.so beside the command)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--within-s", type=float, default=WITHIN_S, metavar="S", help="longer is wrong (default 0.5)")
    parser.add_argument("--deadline-s", type=float, default=600, metavar="S",
                        help="for all; a case is not begun that could not end by then")
    parser.add_argument("--cache", default=None, metavar="FOLDER",
                        help="profile database of what is measured before it is interrupted (default: one made and removed)")
    parser.add_argument("--commit", default=None)
    parser.add_argument("--out", default=None, help="JSON lines; appended to")
    parser.add_argument("--table", default=None, metavar="FILE", help="only print the table of these records")
    parser.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if not (options.out or options.table or options.describe):
        parser.error("--out is needed")
    unknown = set(options.cases) - set(NAMES)
    if unknown:
        parser.error(f"--cases: found {', '.join(sorted(unknown))}, wanted some of {', '.join(dict.fromkeys(NAMES))}")
    options.command = os.path.abspath(options.command)
    options.library = options.library or str(pathlib.Path(options.command).parent / "libconvsched.so")
    return options


# ---- What a case leaves ----

class Database:
    """What cases append to the profile database in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.complete, self.measured = set(), set()  # (file, operation), (file, operation, candidate), of these cases
        self.read_to = collections.Counter({path: path.stat().st_size for path in self.files()})
        # Not what was there before: another program may have known fewer candidates of it.

    def files(self):
        return sorted(self.folder.rglob("*.jsonl"))

    def appended(self, path):
        """Whole lines and a torn last one; none of a file that was rewritten shorter."""
        size = path.stat().st_size
        with open(path, "rb") as file:
            file.seek(min(self.read_to[path], size))
            data = file.read()
        self.read_to[path] = size
        return data.splitlines(keepends=True)

    def take(self):
        """Of the last case: lines, damaged ones among them, operations completed, and candidates measured again of the
        `known` operations that cases before it had completed."""
        told = {"lines": 0, "damaged": 0, "complete": 0, "again": 0, "known": len(self.complete)}
        complete, measured = set(), set()
        for path in self.files():
            for line in self.appended(path):
                told["lines"] += 1
                try:
                    record = json.loads(line)
                except ValueError:
                    told["damaged"] += 1
                    continue
                told["damaged"] += not line.endswith(b"\n")
                operation = path, record.get("op")
                if "complete" in record:
                    complete.add(operation)
                elif "measured" in record:
                    candidate = *operation, record["candidate"]["id"]
                    told["again"] += operation in self.complete and candidate in self.measured
                    measured.add(candidate)
        told["complete"] = len(complete)
        self.complete |= complete
        self.measured |= measured
        return told


def processes_left(terminal):
    """Whether the command's group has any; they are ended."""
    try:
        os.killpg(terminal.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def memory_mib(device):
    """Used on the GPU, by whichever processes; None: nothing tells."""
    index = device.partition(":")[2] or "0"
    try:
        out = subprocess.run(["nvidia-smi", "-i", index, "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                             capture_output=True, text=True, timeout=3, check=True).stdout
        return int(out)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


# ---- One case ----

def lines(written):
    """What was written, without controls; each state of the line of progress is one."""
    text = written.decode(errors="replace").replace("\x1b[K", "").replace("^C", "").replace("\r", "\n")
    return [line.strip() for line in text.split("\n") if line.strip()]


def has_stage(terminal, stage):
    return any(line.startswith(stage + " ") for line in lines(terminal.written))


def wait_for_key(case, terminal):
    """Until the key is to be pressed; returns whether the stage was reached (None: none is waited for)."""
    begun, reached = time.monotonic(), None
    if case.stage:
        while not has_stage(terminal, case.stage) and time.monotonic() - begun < case.most_s:
            if terminal.read(0.03):
                break
        reached = has_stage(terminal, case.stage)
    terminal.read(case.after_s)
    return reached


def press(terminal):
    """Seconds from the key to the command's word and to its end."""
    before, told_s, pressed = len(terminal.written), None, time.monotonic()
    terminal.key(CTRL_C)
    ended = False
    while not ended and time.monotonic() - pressed < HUNG_S:
        ended = terminal.read(0.004)
        seconds = round(time.monotonic() - pressed, 3)
        if told_s is None and b"interrupted" in terminal.written[before:]:
            told_s = seconds
    return {"took_s": seconds, "told_s": told_s, "hung": not ended}


def interrupt(options, case, terminal, backend):
    begun = time.monotonic()
    reached = wait_for_key(case, terminal)
    memory = memory_mib(options.device) if case.memory and backend == "cuda" else None
    before = lines(terminal.written)
    record = {"reached": reached, "memory_mib": memory, "pressed_s": round(time.monotonic() - begun, 2),
              "at": (before or [""])[-1][:80], "resumes": next((line for line in before if "resume" in line), None)}
    ended = terminal.code is not None
    took = {"took_s": None, "told_s": None, "hung": False} if ended else press(terminal)
    return record | took | {"code": terminal.code, "last": (lines(terminal.written) or [""])[-1][:110],
                     "processes_left": processes_left(terminal)}


def measure(options, case, database, folder, device):
    database.folder.mkdir(parents=True, exist_ok=True)
    on = "--devices" if case.args[0] == "bench" else "--device"
    args = [options.command, *case.args, on, options.device, "--cache", str(database.folder)]
    terminal = Terminal(args, records.ROOT, dict(os.environ, TERM="xterm"))
    try:
        found = interrupt(options, case, terminal, device["backend"])
    finally:
        terminal.close()
    unfinished = {str(path) for place in (folder, database.folder) for path in place.rglob("*.tmp.*")}
    return {"schema": SCHEMA, "commit": records.commit(options.commit), "command": shlex.join(args), "device": device,
            "case": case.name, "press": {"stage": case.stage or None, "after_s": case.after_s,
                                         "most_s": case.most_s if case.stage else None},
            **found, "unfinished_files": sorted(unfinished), "database": database.take()}


# ---- The table ----

def ended_by_itself(record):
    """Before the key, or as soon after it that nothing was left to be interrupted."""
    return record["took_s"] is None or record["code"] == 0


def problems(record, within_s):
    if ended_by_itself(record):
        return ["ended by itself"]
    database, found = record["database"], []
    if record["hung"]:
        found.append("hung")
    elif record["took_s"] > within_s:
        found.append(f"longer than {within_s:g} s")
    if not record["hung"] and record["code"] != INTERRUPTED:
        found.append(f"exit code {record['code']}, wanted {INTERRUPTED}")
    if record["processes_left"]:
        found.append("left a process")
    if record["unfinished_files"]:
        found.append(f"left {', '.join(record['unfinished_files'])}")
    if database["damaged"]:
        found.append(f"{database['damaged']} damaged lines")
    if database["again"]:
        found.append(f"{database['again']} candidates measured again")
    return found


def shown_command(record):
    """Without what is the same in all: program, device, cache, files written."""
    words, shown = iter(shlex.split(record["command"])[1:]), []
    for word in words:
        if word in ("--device", "--devices", "--cache", "-o"):
            next(words)
        else:
            shown.append(pathlib.Path(word).name if word.endswith(".json") else word)
    return " ".join(shown)


def shown_key(record):
    at = record["press"]
    if not at["stage"]:
        return f"{at['after_s']:g} s after the start"
    if not record["reached"]:
        return f"at {record['pressed_s']:g} s, {at['stage']} not reached"
    return f"{at['after_s']:g} s into {at['stage']}"


def shown_progress(record):
    """Stage, share and count, or what else the last line was."""
    text = re.sub(r"\s+(\[[#-]*\]\s*)?", " ", record["at"]).removeprefix("convsched: ")
    found = re.match(r".+? \d+% [\d/]+ \w+", text)
    return found[0] if found else text


def shown_seconds(seconds):
    return "" if seconds is None else f"{seconds:.3f}"


def row(record, within_s):
    database = record["database"]
    last = record["last"].removeprefix("convsched: ")
    memory = "" if record["memory_mib"] is None else record["memory_mib"]
    cells = (record["case"], f"`{shown_command(record)}`", shown_key(record), shown_progress(record), memory,
             shown_seconds(record["told_s"]), shown_seconds(record["took_s"]), record["code"], last, database["lines"],
             database["complete"], f"{database['again']} of {database['known']}", "; ".join(problems(record, within_s)) or "none")
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(found, within_s):
    head = ("case", "command", "Ctrl-C", "progress then", "GPU memory used, MiB", "told after, s", "ended after, s",
            "exit code", "last line", "lines kept", "operations completed",
            "candidates measured again, of operations complete before", "problems")
    made = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(row(record, within_s) for record in found)]
    took = [record["took_s"] for record in found if not ended_by_itself(record)]
    on = ", ".join(sorted({f"{record['device']['name']} at {records.commit_of(record)}" for record in found}))
    made += ["", f"{len(took)} interrupted on {on or 'nothing'}; "
                 f"{sum(seconds <= within_s for seconds in took)} ended within {within_s:g} s"
                 f"{f', the slowest after {max(took):.3f} s' if took else ''}."]
    left_out = collections.Counter(NAMES) - collections.Counter(record["case"] for record in found)
    if left_out:
        made += [f"Not recorded: {'; '.join(left_out.elements())}."]
    return "\n".join(made)


# ---- All cases ----

class Refused(Exception):
    """What was asked for cannot be begun."""


def note(text):
    print(f"interrupts: {text}", file=sys.stderr, flush=True)


def describe(options):
    """Prints the device as records have it; the exit code."""
    try:
        with convsched.Library(options.library).open_device(options.device) as device:
            print(json.dumps(device.info()))
    except (OSError, convsched.Error) as problem:  # OSError: no library there
        note(problem)
        return 1
    return 0


def device_of(options):
    """As `describe` tells, so that no context of this process is beside the command's."""
    done = subprocess.run([sys.executable, __file__, "--describe", "--library", options.library, "--device", options.device],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"--device {options.device}: {(done.stderr.strip() or 'no word of it').splitlines()[-1]}")
    device = json.loads(done.stdout)
    if device["backend"] not in SIZES:
        raise Refused(f"--device {options.device}: found backend {device['backend']}, wanted {' or '.join(SIZES)}")
    return device


def prepare(options, sizes, cache, seconds):
    """Measures the network, so that stages behind profiling are soon reached; raises subprocess.SubprocessError."""
    end = time.monotonic() + seconds
    common = ("--device", options.device, "--cache", str(cache), "--quiet")
    planned = ("--policy", "coselect", "--search-seconds", "0", "--samples", "1", "--verify", "none")
    for args in (("run", *sizes.network, *planned), ("profile", *sizes.single)):
        note(f"prepares: {shlex.join(args)}")
        subprocess.run([options.command, *args, *common], cwd=records.ROOT, stdout=subprocess.DEVNULL, check=True,
                       timeout=max(0, end - time.monotonic()))


def check_files(options):
    if not os.access(options.command, os.X_OK):
        raise Refused(f"--command: nothing to run at {options.command}")
    try:
        with open(options.out, "ab"):
            pass
    except OSError as error:
        raise Refused(f"--out: {error}") from error


def run_cases(options, device, folder):
    """The records, and the names of cases that were not begun."""
    end = time.monotonic() + options.deadline_s
    sizes = SIZES[device["backend"]]
    known = pathlib.Path(options.cache).resolve() if options.cache else folder / KNOWN
    cases = [case for case in all_cases(sizes, folder)
             if case.name in options.cases and case.only in ("", device["backend"])]
    write_experiment(sizes, folder)
    if any(case.cache == KNOWN for case in cases):
        prepare(options, sizes, known, options.deadline_s)
    databases = {name: Database(known if name == KNOWN else folder / name) for name in {case.cache for case in cases}}
    found, left_out = [], []
    for case in cases:
        needs = SPARE_S + case.after_s + (min(case.most_s, REACHES_S) if case.stage else 0)
        if time.monotonic() + needs > end:
            left_out.append(case.name)
            continue
        record = measure(options, case, databases[case.cache], folder, device)
        records.append(options.out, record)
        found.append(record)
        note(f"{case.name}: {'; '.join(problems(record, options.within_s)) or shown_seconds(record['took_s']) + ' s'}")
    return found, left_out


def main():
    options = arguments()
    if options.table:
        print(table(records.of_schema(options.table, SCHEMA), options.within_s))
        return 0
    if options.describe:
        return describe(options)
    try:
        check_files(options)
        device = device_of(options)
        with tempfile.TemporaryDirectory(prefix="convsched-interrupts-") as folder:
            found, left_out = run_cases(options, device, pathlib.Path(folder))
    except Refused as problem:
        note(problem)
        return 2
    except subprocess.SubprocessError as problem:  # of what prepares
        note(problem)
        return 1
    print(table(found, options.within_s))
    if left_out:
        note(f"left out, no time: {'; '.join(left_out)}")
    return 1 if left_out or not found or any(problems(record, options.within_s) for record in found) else 0


if __name__ == "__main__":
    sys.exit(main())
