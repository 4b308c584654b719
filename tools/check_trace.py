#!/usr/bin/env python3
"""Checks traces that `convsched trace` wrote, by what docs/traces.md says of them; shares no code with what
writes them.

    tools/check_trace.py TRACE.json [--graph MODEL.json]

With the graph's file: every node of it is in a slice, or named as one that no kernel computes. Prints what
was found and exits 1, or says in a line what was checked. Standard library only.
"""
import argparse
import json
import math
import sys

SCHEMA = "convsched.trace/1"
MEASURED, PLANNED = 1, 2
MOST_SLACK_US = 1.0  # by which clocks of streams may differ
EPSILON_US = 0.0015  # times are in steps of a nanosecond, and both ends are rounded
MOST = 20            # faults that are told
# Operators whose nodes may have no kernel: views, copies into place, and what passes drop.
WITHOUT_KERNEL = {"Concat", "Flatten", "Reshape", "Dropout", "Identity", "Transpose", "Cast", "Slice"}
NUMBER, INTEGER, TEXT, FLAG, LIST = (int, float), (int,), (str,), (bool,), (list,)
# Of every slice: the types, and whether it may be unknown (null).
ARGS = {
    "nodes": (LIST, False), "candidate": (TEXT, False), "position": (INTEGER, False),
    "kernel_index": (INTEGER, False), "kernels_of_launch": (INTEGER, False), "stream": (INTEGER, False), "device_stream": (INTEGER, True),
    "part_sms": (INTEGER, True), "priority": (INTEGER, False), "workspace_bytes": (INTEGER, False),
    "start_us": (NUMBER, False), "end_us": (NUMBER, False), "early": (FLAG, False), "kernel": (TEXT, True),
    "registers_per_thread": (INTEGER, True), "static_shared_bytes_per_block": (INTEGER, True),
    "dynamic_shared_bytes_per_block": (INTEGER, True), "local_bytes_per_thread": (INTEGER, True),
    "threads_per_block": (INTEGER, True), "blocks": (INTEGER, True), "grid": (LIST, True), "block": (LIST, True),
    "blocks_per_sm": (INTEGER, True), "occupancy_percent": (NUMBER, True),
}
KERNEL = ("registers_per_thread", "static_shared_bytes_per_block", "dynamic_shared_bytes_per_block",
          "local_bytes_per_thread", "threads_per_block", "block", "blocks_per_sm")
UNITS = ("SM registers in use (%)", "SM shared memory in use (%)", "SM threads in use (%)")
ARENA = "arena in use (bytes)"


class Faults:
    def __init__(self):
        self.found = []

    def add(self, text):
        self.found.append(text)


def is_a(value, types):
    """A bool is no number here; numbers are finite."""
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) and not (isinstance(value, float) and not math.isfinite(value))


def told(event):
    return f"{event.get('ph')} \"{event.get('name')}\" (pid {event.get('pid')}, tid {event.get('tid')}, ts {event.get('ts')})"


def end_of(event):
    return event["ts"] + event["dur"]


# ---- Events by themselves ----

def check_fields(event, faults):
    """What each kind of event has; False: it is looked at no further."""
    wanted = {"M": ("pid",), "X": ("pid", "tid", "ts", "dur"), "s": ("pid", "tid", "ts", "id"),
              "f": ("pid", "tid", "ts", "id"), "C": ("pid", "ts")}
    kind = event.get("ph") if isinstance(event, dict) else None
    if kind not in wanted:
        faults.add(f"an event of kind {kind!r}, wanted one of {sorted(wanted)}")
        return False
    good = True
    for field in wanted[kind]:
        if not is_a(event.get(field), INTEGER if field in ("pid", "tid", "id") else NUMBER):
            faults.add(f"{told(event)}: {field} is {event.get(field)!r}, wanted a number")
            good = False
    if not isinstance(event.get("name"), str) or not event["name"]:
        faults.add(f"{told(event)}: no name")
        good = False
    if good and kind != "M" and event["ts"] < 0:
        faults.add(f"{told(event)}: before the first start")
    if good and kind == "X" and event["dur"] <= 0:
        faults.add(f"{told(event)}: lasts {event['dur']} us")
        good = False
    return good


def slack_of(event, slack):
    """By how much a slice may start before what it waits for has ended without being early."""
    return EPSILON_US + (slack if event["pid"] == MEASURED else 0)


def check_args(event, slack, faults):
    args = event.get("args")
    if not isinstance(args, dict):
        faults.add(f"{told(event)}: no args")
        return False
    good = True
    for name, (types, optional) in ARGS.items():
        if name not in args:
            faults.add(f"{told(event)}: no {name}")
            good = False
        elif not is_a(args[name], types) and not (optional and args[name] is None):
            faults.add(f"{told(event)}: {name} is {args[name]!r}")
            good = False
        elif is_a(args[name], NUMBER) and args[name] < 0:
            faults.add(f"{told(event)}: {name} is {args[name]}, below 0")
    if not good:
        return False
    if len({args[name] is None for name in KERNEL}) > 1 or (args["kernel"] is None) != (args["block"] is None):
        faults.add(f"{told(event)}: of its kernel some things are known and some are not")
    if args["grid"] is not None and math.prod(args["grid"]) != args["blocks"]:
        faults.add(f"{told(event)}: {args['blocks']} blocks of a grid {args['grid']}")
    if args["block"] is not None and math.prod(args["block"]) != args["threads_per_block"]:
        faults.add(f"{told(event)}: {args['threads_per_block']} threads of a block {args['block']}")
    if args["occupancy_percent"] is not None and args["occupancy_percent"] > 100:
        faults.add(f"{told(event)}: an occupancy of {args['occupancy_percent']}%")
    if event["tid"] != args["stream"] + 1:
        faults.add(f"{told(event)}: is of stream {args['stream']}")
    if abs(end_of(event) - args["end_us"]) > EPSILON_US:
        faults.add(f"{told(event)}: ends at {end_of(event):.3f}, its args say {args['end_us']}")
    late = event["ts"] - args["start_us"]
    if late < -EPSILON_US or (late > slack_of(event, slack) and not args["early"]):
        faults.add(f"{told(event)}: its args say that it starts at {args['start_us']}")
    return True


# ---- Slices of a stream, of a launch ----

def check_streams(slices, slack, faults):
    """No two slices of a stream overlap, so that they nest; by their true times only early ones may."""
    streams = {}
    for event in slices:
        streams.setdefault((event["pid"], event["tid"]), []).append(event)
    for events in streams.values():
        events.sort(key=lambda event: (event["ts"], end_of(event)))
        for before, event in zip(events, events[1:]):
            if event["ts"] < end_of(before) - EPSILON_US:
                faults.add(f"{told(event)} overlaps {told(before)} of its stream, which ends at {end_of(before):.3f}")
            real = event["args"]["start_us"] < before["args"]["end_us"] - slack_of(event, slack)
            if real and not event["args"]["early"]:
                faults.add(f"{told(event)} started before {told(before)} of its stream had ended, and is not early")


def check_launches(slices, faults):
    """Every launch has all its kernels, once each, in order."""
    launches = {}
    for event in slices:
        launches.setdefault((event["pid"], event["args"]["position"]), []).append(event)
    for (pid, position), events in launches.items():
        events.sort(key=lambda event: event["args"]["kernel_index"])
        found = [event["args"]["kernel_index"] for event in events]
        wanted = events[0]["args"]["kernels_of_launch"]
        if found != list(range(wanted)):
            faults.add(f"launch {position} of pid {pid} has kernels {found} of {wanted}")
        for before, event in zip(events, events[1:]):
            if event["args"]["start_us"] < before["args"]["start_us"]:
                faults.add(f"{told(event)} starts before {told(before)} of its launch")
    return launches


def check_processes(launches, simulated, faults):
    """What was measured is what was planned."""
    positions = {pid: {p for q, p in launches if q == pid} for pid in (MEASURED, PLANNED)}
    if not positions[PLANNED]:
        faults.add("no planned slices")
    if simulated and positions[MEASURED]:
        faults.add("slices were measured on a simulated device")
    if simulated:
        return
    for position in sorted(positions[MEASURED] ^ positions[PLANNED]):
        copies = [e for e in launches.get((PLANNED, position), []) if not e["args"]["nodes"]]
        if position in positions[MEASURED] or not copies:
            faults.add(f"launch {position} is in one of the two processes only")
    for position in positions[MEASURED] & positions[PLANNED]:
        a, b = launches[MEASURED, position][0], launches[PLANNED, position][0]
        for what in ("nodes", "candidate", "stream"):
            if a["args"][what] != b["args"][what]:
                faults.add(f"{told(a)}: {what} {a['args'][what]!r} was planned as {b['args'][what]!r}")


# ---- Flows ----

def slice_at(slices, event):
    """The slice of the event's stream that it is in: its start counts, its end does not."""
    for other in slices.get((event["pid"], event["tid"]), []):
        if other["ts"] - EPSILON_US / 2 <= event["ts"] < end_of(other) + EPSILON_US / 2:
            if event["ts"] < end_of(other) - EPSILON_US / 4:
                return other
    return None


def check_flows(events, slices, slack, faults):
    """Each has one start and one end, both in slices; what depends starts when what it needs has ended, or
    is early and ends later. Returns how many."""
    flows, streams = {}, {}
    for event in slices:
        streams.setdefault((event["pid"], event["tid"]), []).append(event)
    for event in events:
        if event["ph"] in ("s", "f"):
            flows.setdefault(event["id"], []).append(event)
    for number, ends in flows.items():
        if sorted(event["ph"] for event in ends) != ["f", "s"]:
            faults.add(f"flow {number} has {''.join(e['ph'] for e in ends)!r}, wanted one start and one end")
            continue
        start, end = sorted(ends, key=lambda event: event["ph"] == "f")
        if end.get("bp") != "e":
            faults.add(f"flow {number}: its end is bound to the next slice, wanted the one it is in")
        a, b = slice_at(streams, start), slice_at(streams, end)
        if a is None or b is None:
            faults.add(f"flow {number}: its {'start' if a is None else 'end'} is in no slice")
            continue
        if start["pid"] != end["pid"] or a is b:
            faults.add(f"flow {number}: from {told(a)} to {told(b)}")
        if end["ts"] < start["ts"] - EPSILON_US:
            faults.add(f"flow {number}: ends before it starts")
        early = b["args"]["early"] and b["args"]["end_us"] >= a["args"]["end_us"] - EPSILON_US
        if b["args"]["start_us"] < a["args"]["end_us"] - slack_of(b, slack) and not early:
            faults.add(f"{told(b)} starts before {told(a)}, which it depends on, has ended")
        if b["ts"] < end_of(a) - EPSILON_US:
            faults.add(f"{told(b)} is drawn before the end of {told(a)}, which it depends on")
    return len(flows)


# ---- Counters ----

def check_counters(events, slices, arena_bytes, faults):
    """Never below 0, shares never above 100%, bytes never above the arena; 0 at the end, and no times twice."""
    tracks = {}
    for event in events:
        if event["ph"] == "C":
            tracks.setdefault((event["pid"], event["name"]), []).append(event)
    for (pid, name), points in tracks.items():
        if name not in UNITS + (ARENA,):
            faults.add(f"a counter {name!r}")
        values = [point.get("args") or {} for point in points]
        if any(not v or not all(is_a(x, NUMBER) for x in v.values()) for v in values):
            faults.add(f"{name} (pid {pid}): values that are no numbers")
            continue
        if any(b["ts"] <= a["ts"] for a, b in zip(points, points[1:])):
            faults.add(f"{name} (pid {pid}): times do not rise")
        if min(min(v.values()) for v in values) < 0:
            faults.add(f"{name} (pid {pid}): a value below 0")
        if any(values[-1].values()):
            faults.add(f"{name} (pid {pid}): ends at {values[-1]}, wanted 0")
        early = any(e["args"]["early"] for e in slices if e["pid"] == pid)
        most = max(sum(v.values()) for v in values)
        if most <= 0:
            faults.add(f"{name} (pid {pid}): never above 0")
        if name in UNITS and most > 100:
            faults.add(f"{name} (pid {pid}): {most}%")
        if name == ARENA and most > arena_bytes and not early:
            faults.add(f"{name} (pid {pid}): {most} bytes of an arena of {arena_bytes}")
    for pid in {event["pid"] for event in slices}:
        known = any(e["args"]["kernel"] is not None and e["args"]["grid"] is not None
                    for e in slices if e["pid"] == pid)
        for name in (UNITS if known else ()) + (ARENA,):
            if (pid, name) not in tracks:
                faults.add(f"no counter {name!r} of pid {pid}")


# ---- Names ----

def check_names(events, slices, faults):
    processes = {e["pid"]: e.get("args", {}).get("name") for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e.get("tid")) for e in events if e["name"] == "thread_name"}
    for pid in {event["pid"] for event in slices}:
        wanted = ("measured",) if pid == MEASURED else ("planned", "simulated")
        if processes.get(pid) not in wanted:
            faults.add(f"pid {pid} is called {processes.get(pid)!r}, wanted {' or '.join(wanted)}")
    for track in sorted({(event["pid"], event["tid"]) for event in slices} - threads):
        faults.add(f"stream (pid, tid) {track} has no name")


def check_nodes(graph, slices, other, faults):
    without = {entry["node"]: entry["op"] for entry in other.get("nodes_without_kernel", [])}
    names = {node["name"]: node["op"] for node in graph["nodes"]}
    for pid in sorted({event["pid"] for event in slices}):
        seen = {name for event in slices if event["pid"] == pid for name in event["args"]["nodes"]}
        for name in names:
            if name not in seen and name not in without:
                faults.add(f"node {name} ({names[name]}) is in no slice of pid {pid}")
        for name in sorted(seen - set(names)):
            faults.add(f"a slice of pid {pid} computes {name}, which is no node of the graph")
        for name in sorted(seen & set(without)):
            faults.add(f"node {name} has a slice, and is told to have no kernel")
    for name, op in without.items():
        if names.get(name) != op:
            faults.add(f"node {name} ({op}) has no kernel; in the graph it is {names.get(name)}")
        elif op not in WITHOUT_KERNEL:
            faults.add(f"node {name}, a {op}, is told to have no kernel")


def check_told(other, slices, faults):
    """What is told beside the events."""
    for key in ("model", "batch", "dtype", "convsched", "device", "plan", "traced", "latency_us", "simulated"):
        if key not in other:
            faults.add(f"otherData: no {key}")
    traced = other.get("traced")
    if other.get("simulated"):
        if traced is not None or other.get("latency_us") is not None:
            faults.add("otherData: a simulated device was traced or timed")
        return
    spans = (traced or {}).get("spans_us") or []
    if len(spans) != (traced or {}).get("runs"):
        faults.add(f"otherData: {len(spans)} spans of {(traced or {}).get('runs')} runs")
        return
    if sorted(spans)[len(spans) // 2] != spans[traced["run"]]:
        faults.add(f"otherData: run {traced['run']} is not the one of median span")
    slack = traced.get("clock_slack_us")
    if not is_a(slack, NUMBER) or not 0 <= slack <= MOST_SLACK_US:
        faults.add(f"otherData: clocks differ by {slack} us, wanted 0 to {MOST_SLACK_US}")
    last = max((e["args"]["end_us"] for e in slices if e["pid"] == MEASURED), default=0)
    if abs(last - traced["span_us"]) > EPSILON_US:
        faults.add(f"otherData: a span of {traced['span_us']} us, the last slice ends at {last}")
    if not (other.get("latency_us") or {}).get("samples"):
        faults.add("otherData: no latency beside the traced times")


def check(trace, graph=None):
    """Faults of a trace, as texts."""
    faults = Faults()
    if not isinstance(trace, dict) or trace.get("schema") != SCHEMA or not isinstance(trace.get("traceEvents"), list):
        return [f"no {SCHEMA} with traceEvents"]
    events = [event for event in trace["traceEvents"] if check_fields(event, faults)]
    other = trace.get("otherData") or {}
    slack = (other.get("traced") or {}).get("clock_slack_us")
    slack = slack if is_a(slack, NUMBER) else 0
    slices = [event for event in events if event["ph"] == "X" and check_args(event, slack, faults)]
    check_told(other, slices, faults)
    check_names(events, slices, faults)
    check_streams(slices, slack, faults)
    check_processes(check_launches(slices, faults), bool(other.get("simulated")), faults)
    check_flows(events, slices, slack, faults)
    check_counters(events, slices, (other.get("plan") or {}).get("arena_bytes", 0), faults)
    if graph:
        check_nodes(graph, slices, other, faults)
    return faults.found


def main():
    parser = argparse.ArgumentParser(description="Checks a trace of `convsched trace`.")
    parser.add_argument("trace")
    parser.add_argument("--graph", help="the graph's JSON file")
    options = parser.parse_args()
    try:
        with open(options.trace, encoding="utf-8") as file:
            trace = json.load(file)
        graph = None
        if options.graph:
            with open(options.graph, encoding="utf-8") as file:
                graph = json.load(file)
    except (OSError, ValueError) as problem:
        print(f"check_trace: {problem}")
        return 1
    found = check(trace, graph)
    for fault in found[:MOST]:
        print(f"{options.trace}: {fault}")
    if len(found) > MOST:
        print(f"… and {len(found) - MOST} more")
    if not found:
        kinds = {kind: sum(e["ph"] == kind for e in trace["traceEvents"]) for kind in "XsC"}
        print(f"{options.trace}: {kinds['X']} slices, {kinds['s']} flows, {kinds['C']} counter values: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
