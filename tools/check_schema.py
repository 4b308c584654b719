#!/usr/bin/env python3
"""Checks what is written against the JSON Schemas under docs/schema, and that these refuse what the
formats forbid: every model against convsched.graph/1, the records of bench/results against convsched.run/1 and
convsched.throughput/1, experiments against convsched.experiment/1 and, given the command, every table it makes of recorded
profiles against convsched.report/1, and an experiment's records.

    tools/check_schema.py [CONVSCHED]

Exit: 0 ok, 1 a mismatch, 77 no jsonschema package.
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def schema_of(name):
    import jsonschema
    schema = json.loads((ROOT / "docs/schema" / name).read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


def mismatches(validator, what, value):
    """Prints the first errors; 1 if there are any."""
    errors = list(validator.iter_errors(value))
    for error in errors[:3]:
        place = "/".join(str(p) for p in error.absolute_path)
        print(f"{what}: /{place}: {error.message[:200]}")
    return 1 if errors else 0


def accepted_changes(validator, what, value, changes):
    """How many changes, each of which makes the value wrong, the schema accepts."""
    wrong = 0
    for change, apply in changes.items():
        changed = copy.deepcopy(value)
        apply(changed)
        if not list(validator.iter_errors(changed)):
            print(f"{what}: the schema accepts {change}")
            wrong += 1
    return wrong


def check_graphs():
    validator = schema_of("graph.schema.json")
    models = [path for path in sorted((ROOT / "models").glob("*.json"))
              if path.name != "errors.json"]  # convsched.errors/1
    models += sorted((ROOT / "tests/data/goldens").glob("*/graph.json"))
    wrong = 0 if models else 1
    for path in models:
        wrong += mismatches(validator, path.relative_to(ROOT), json.loads(path.read_text()))
    graph = {
        "schema": "convsched.graph/1", "name": "t",
        "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "f32"}],
        "nodes": [{"name": "a", "op": "Relu", "inputs": ["x"]}], "outputs": ["a"]}
    wrong += mismatches(validator, "a valid graph", graph)
    wrong += accepted_changes(validator, "graph", graph, {
        "an unknown key": lambda g: g.update(extra=1),
        "an unknown operator": lambda g: g["nodes"][0].update(op="Reloo"),
        "an unknown key of a node": lambda g: g["nodes"][0].update(attributes={}),
        "a node without a name": lambda g: g["nodes"][0].pop("name"),
        "another schema": lambda g: g.update(schema="convsched.graph/2"),
        "no outputs": lambda g: g.pop("outputs")})
    print(f"{len(models)} models checked, {wrong} mismatches")
    return wrong


# Model, profile, batch, dtype, more options: every table, with all that its rows may lack.
REPORTS = [
    ("tests/data/report/branches.json", "tests/data/report/branches.profile.jsonl", 1, "f32",
     ["--candidates", "all"]),
    ("models/googlenet.json", "tests/data/profiles/h100-f16-b32.jsonl.gz", 32, "f16", []),
    ("models/googlenet.json", "tests/data/profiles/h100-tf32-b1.jsonl.gz", 1, "tf32", ["--candidates", "pareto"]),
]


def report_of(command, table, model, profile, batch, dtype, more):
    done = subprocess.run([command, "report", ROOT / model, "--table", table, "--profile", ROOT / profile,
                           "--batch", str(batch), "--dtype", dtype, "--json", "-", *more],
                          check=True, stdout=subprocess.PIPE, timeout=120)
    return json.loads(done.stdout)


def wrong_reports(report):
    """Ways to break a report of any table."""
    return {
        "an unknown key": lambda r: r.update(extra=1),
        "another schema": lambda r: r.update(schema="convsched.report/2"),
        "another table": lambda r: r.update(table="pie"),
        "the rows of another table":
            lambda r: r.update(table="workspace" if report["table"] != "workspace" else "resources"),
        "no rows": lambda r: r.pop("rows"),
        "a device without identity": lambda r: r["device"].pop("identity"),
        "an unknown column": lambda r: r["columns"][0].update(key="extra"),
        "a row of more": lambda r: r["rows"][0].update(extra=1),
        "a row of less": lambda r: r["rows"][0].pop("node"),
        "a time as text": lambda r: r["rows"][0].update(
            {next(k for k in r["rows"][0] if k.endswith("_us")): "7.1 us"}),
        "an unknown total": lambda r: r["summary"].update(extra=1)}


def check_reports(command):
    validator = schema_of("report.schema.json")
    wrong, checked = 0, 0
    for table in ("resources", "workspace", "complementary"):
        for model, profile, batch, dtype, more in REPORTS:
            for paper in ([], ["--paper"]):
                report = report_of(command, table, model, profile, batch, dtype, more + paper)
                what = f"report --table {table} of {profile}"
                checked += 1
                wrong += mismatches(validator, what, report)
                if [column["key"] for column in report["columns"]] != list(report["rows"][0]):
                    print(f"{what}: the columns are not those of the rows")
                    wrong += 1
                wrong += accepted_changes(validator, what, report, wrong_reports(report))
    print(f"{checked} reports checked, {wrong} mismatches")
    return wrong


def check_told(validator, what, command, changes):
    """The table that a command prints as JSON, and ways to break it."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=120)
    told = json.loads(done.stdout)
    return mismatches(validator, what, told) + accepted_changes(validator, what, told, changes)


def check_tradeoff(command):
    """The front of a small network on the CPU."""
    with tempfile.TemporaryDirectory() as cache:
        wrong = check_told(
            schema_of("report.schema.json"), "plan --tradeoff",
            [command, "plan", ROOT / "tests/data/report/branches.json", "--device", "cpu", "--tradeoff", "--cache", cache,
             "--quiet", "--json", "-"], {
                "a row of more": lambda r: r["rows"][0].update(extra=1),
                "a row of less": lambda r: r["rows"][0].pop("arena_bytes"),
                "no plan": lambda r: r.update(rows=[]),
                "a limit as text": lambda r: r["rows"][0].update(memory_limit="1 MiB"),
                "faster than the fastest": lambda r: r["rows"][0].update(slower=0.5),
                "the rows of another table": lambda r: r.update(table="workspace"),
                "no policy": lambda r: r["summary"].pop("policy")})
    print(f"1 front checked, {wrong} mismatches")
    return wrong


def check_layers(command):
    """Layers of a graph, with views and windows and without."""
    wrong = check_told(
        schema_of("report.schema.json"), "inspect", [command, "inspect", ROOT / "models/googlenet.json", "--json", "-"], {
            "a row of more": lambda r: r["rows"][0].update(extra=1),
            "a row of less": lambda r: r["rows"][0].pop("flops"),
            "a device": lambda r: r.update(device={"name": "", "identity": ""}),
            "bytes as text": lambda r: r["rows"][0].update(bytes="1 kB"),
            "the rows of another table": lambda r: r.update(table="workspace"),
            "no width": lambda r: r["summary"].pop("width")})
    print(f"1 graph's layers checked, {wrong} mismatches")
    return wrong


def check_comparison(command):
    """Two recorded files: latencies, and rates with layouts."""
    validator = schema_of("report.schema.json")
    results, wrong = ROOT / "bench/results", 0
    for a, b in (("2026-11-28-h200-second-peers.jsonl", "2026-11-28-h200-first-peers.jsonl"),
                 ("2026-11-29-h200-tuned-throughput.jsonl", "2026-11-29-h200-whole-throughput.jsonl")):
        wrong += check_told(validator, f"compare {a}", [command, "compare", results / a, results / b, "--json", "-"], {
            "a row of more": lambda r: r["rows"][0].update(extra=1),
            "a row of less": lambda r: r["rows"][0].pop("a_low"),
            "a model for all": lambda r: r.update(model="googlenet"),
            "one side": lambda r: r.pop("b"),
            "another verdict": lambda r: r["rows"][0].update(verdict="better"),
            "the rows of another table": lambda r: r.update(table="layers")})
    print(f"2 comparisons checked, {wrong} mismatches")
    return wrong


def example_run():
    """A record with the members that only some runs have."""
    figures = {"concurrency": 1.5, "overlapped_us": 2.0, "busy_us": 6.0, "active_us": 4.0, "span_us": 4.5}
    return {
        "schema": "convsched.run/1", "model": "m", "batch": 1, "dtype": "f16", "command": "convsched run m.json",
        "device": {"name": "d"},
        "timings_s": {"load": 0.1, "profile": 2.0, "plan": 0.1, "prepare": 0.2, "first_result": None, "verify": 1.5},
        "policies": [{
            "name": "coselect",
            "fallbacks": {"confidence": 0.95, "untried": 1, "blocks": [
                {"first": "a", "last": "c", "tasks": 3, "streams": 2, "fell_back": True, "limiter": "registers",
                 "pair": ["a", "b"], "gain": {"median": 0.98, "low": 0.97, "high": 0.99, "samples": 21}}]},
            "stages": {"known": 3, "measured": 2, "estimated": 0, "seconds": 0.5},
            "split": {"parts": [32, 100], "streams": [0, 1, None]},
            "comparisons": [{"with": "streams", "same": True, "ratio": None, "took_over": False}],
            "overlap": {"runs": 5, "blocks": [{"tasks": ["a", "b"], "streams": 2, "predicted": dict(figures),
                                               "achieved": None}],
                        "whole": {"predicted": dict(figures), "achieved": dict(figures)}}}],
        "left_out": [{"name": "jax.jit", "layout": "nchw", "reason": "ImportError: none here"}]}


def check_results(validator, schema):
    """How many records of bench/results have this schema, and how many of them do not match it."""
    wrong, checked = 0, 0
    for path in sorted((ROOT / "bench/results").glob("*.json*")):
        text = path.read_text()
        records = [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
        for record in records:
            if record.get("schema") == schema:
                checked += 1
                wrong += mismatches(validator, path.relative_to(ROOT), record)
    return checked, wrong


def check_runs():
    """Every record of bench/results, and what the schema must refuse."""
    validator = schema_of("run.schema.json")
    checked, wrong = check_results(validator, "convsched.run/1")
    record = example_run()
    wrong += mismatches(validator, "an example of a run", record)
    wrong += accepted_changes(validator, "an example of a run", record, {
        "another schema": lambda r: r.update(schema="convsched.run/2"),
        "no policies": lambda r: r.update(policies=[]),
        "a verification that took less than no time": lambda r: r["timings_s"].update(verify=-1),
        "an unknown timing": lambda r: r["timings_s"].update(extra=1.0),
        "an overlap without blocks": lambda r: r["policies"][0]["overlap"].pop("blocks"),
        "a block of no tasks": lambda r: r["policies"][0]["overlap"]["blocks"][0].update(tasks=[]),
        "a block of more": lambda r: r["policies"][0]["overlap"]["blocks"][0].update(extra=1),
        "a fallback of no stream": lambda r: r["policies"][0]["fallbacks"]["blocks"][0].update(streams=0),
        "an unknown limiter": lambda r: r["policies"][0]["fallbacks"]["blocks"][0].update(limiter="luck"),
        "a pair of one": lambda r: r["policies"][0]["fallbacks"]["blocks"][0].update(pair=["a"]),
        "a gain without an interval": lambda r: r["policies"][0]["fallbacks"]["blocks"][0]["gain"].pop("low"),
        "a comparison with nobody": lambda r: r["policies"][0]["comparisons"][0].pop("with"),
        "a split whose streams are not told": lambda r: r["policies"][0]["split"].pop("streams"),
        "a part of no SMs": lambda r: r["policies"][0]["split"].update(parts=[0, 132]),
        "a single part": lambda r: r["policies"][0]["split"].update(parts=[132]),
        "more parts than there can be": lambda r: r["policies"][0]["split"].update(parts=[8] * 5),
        "a stream on a part before the first": lambda r: r["policies"][0]["split"].update(streams=[-1]),
        "a split of more": lambda r: r["policies"][0]["split"].update(priority=1),
        "stages that are not counted": lambda r: r["policies"][0]["stages"].pop("estimated"),
        "a figure less": lambda r: r["policies"][0]["overlap"]["whole"]["achieved"].pop("busy_us"),
        "a contender left out for no reason": lambda r: r["left_out"][0].pop("reason"),
        "a layout of nobody": lambda r: r["left_out"][0].update(layout="hwcn"),
        "a first result before the start": lambda r: r["policies"][0].update(first_result_s=-1),
        "less than nothing beside something":
            lambda r: r["policies"][0]["overlap"]["whole"]["achieved"].update(concurrency=0.5)})
    print(f"{checked} records checked, {wrong} mismatches")
    return wrong


def example_throughput():
    statistics = lambda value: {"median": value, "p10": value, "p90": value, "variation": 0.0, "samples": [value]}
    taken = lambda value: {"requests": 9, "images_per_s": statistics(value), "host_images_per_s": value}
    return {
        "schema": "convsched.throughput/1", "model": "m", "dtype": "f16", "batch": 1, "commit": "c", "command": "x", "seed": 0,
        "graph_hash": None, "device": {"name": "d", "backend": "cuda"},
        "host": {"cpus": 1, "machine": "m", "python": "3", "convsched": "0"},
        "windows": {"screening": {"rounds": 3, "seconds": 0.03}, "final": {"rounds": 50, "seconds": 0.1, "finalists": 3},
                    "energy": {"rounds": 0, "seconds": 1.0}},
        "reference": None, "left_out": [{"name": "torch.eager", "layout": None, "reason": "ImportError: none here"}],
        "no_joules": None, "verification": {"passed": True},
        "contenders": [{"name": "coselect", "how": "h", "first_result_s": 1.0, "rel_l2_float64": None, "streams": 4,
                        "verification": {"passed": True, "slots": 2, "limit_float64": 0.02},
                        "rates": [{"in_flight": 2, "screening": taken(10.0), "final": taken(11.0),
                                   "joules_per_image": statistics(0.1)},
                                  {"in_flight": 1, "screening": taken(9.0), "final": None, "joules_per_image": None}]}]}


def check_throughput():
    validator = schema_of("throughput.schema.json")
    checked, wrong = check_results(validator, "convsched.throughput/1")
    record = example_throughput()
    rate = lambda r: r["contenders"][0]["rates"][0]
    wrong += mismatches(validator, "an example of throughput", record)
    wrong += accepted_changes(validator, "an example of throughput", record, {
        "another schema": lambda r: r.update(schema="convsched.run/1"),
        "an unknown key": lambda r: r.update(extra=1),
        "no contenders": lambda r: r.update(contenders=[]),
        "no word on joules": lambda r: r.pop("no_joules"),
        "a contender left out for no reason": lambda r: r["left_out"][0].pop("reason"),
        "a contender not checked": lambda r: r["contenders"][0].pop("verification"),
        "no request in flight": lambda r: rate(r).update(in_flight=0),
        "finals without samples": lambda r: rate(r)["final"]["images_per_s"].pop("samples"),
        "no screening": lambda r: rate(r).update(screening=None),
        "a rate of nothing": lambda r: rate(r)["final"]["images_per_s"].update(median=0),
        "joules as text": lambda r: rate(r).update(joules_per_image="0.1 J"),
        "windows of no length": lambda r: r["windows"]["final"].update(seconds=0)})
    print(f"{checked} records of throughput checked, {wrong} mismatches")
    return wrong


def check_specifications():
    """The experiments that are shipped, and what the schema must refuse."""
    validator = schema_of("experiment.schema.json")
    paths, wrong = sorted((ROOT / "experiments").glob("*.json")), 0
    for path in paths:
        wrong += mismatches(validator, path.relative_to(ROOT), json.loads(path.read_text()))
    spec = json.loads((ROOT / "experiments/spaa2020.json").read_text())
    wrong += accepted_changes(validator, "spaa2020.json", spec, {
        "an unknown key": lambda s: s.update(extra=1),
        "another schema": lambda s: s.update(schema="convsched.experiment/2"),
        "no models": lambda s: s.update(models=[]),
        "a batch of none": lambda s: s.update(batches=[0]),
        "a batch twice": lambda s: s.update(batches=[1, 1]),
        "an unknown dtype": lambda s: s.update(dtypes=["f64"]),
        "an unknown policy": lambda s: s.update(policies=["magic"]),
        "a limit that is no size": lambda s: s.update(workspace_limits=["many"]),
        "one part": lambda s: s.update(partitions=["32"]),
        "a family without a name": lambda s: s["families"][0].pop("name"),
        "an exclusion of everything": lambda s: s.update(exclude=[{}]),
        "too many samples": lambda s: s.update(samples=10000),
        "an unknown table": lambda s: s["tables"][0].update(table="pie")})
    print(f"{len(paths)} specifications checked, {wrong} mismatches")
    return wrong


def check_recorded_experiments():
    """What is recorded under bench/results/spaa2020."""
    validator, runs, checked, wrong = schema_of("experiment-record.schema.json"), schema_of("run.schema.json"), 0, 0
    for path in sorted((ROOT / "bench/results/spaa2020").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            checked += 1
            wrong += mismatches(validator, path.relative_to(ROOT), record)
            if record.get("run"):
                wrong += mismatches(runs, path.relative_to(ROOT), record["run"])
    print(f"{checked} recorded lines of experiments checked, {wrong} mismatches")
    return wrong


def check_experiment(command):
    """The records and the table of an experiment on a simulated device: cells that fail, a profile."""
    validator, runs, wrong = schema_of("experiment-record.schema.json"), schema_of("run.schema.json"), 0
    spec = {"schema": "convsched.experiment/1", "name": "e", "models": [str(ROOT / "models/googlenet.json")],
            "dtypes": ["f16"], "batches": [1], "policies": ["streams"], "tables": [{"table": "complementary"}],
            "families": [{"name": "all"}, {"name": "none", "allow": ["none"]}]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "spec.json").write_text(json.dumps(spec))
        device = f"sim:{ROOT / 'tests/data/profiles/h100-f16-b1.jsonl.gz'}"
        subprocess.run([command, "experiment", path / "spec.json", "--device", device, "--quiet", "--output",
                        path / "out.jsonl"], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        records = [json.loads(line) for line in (path / "out.jsonl").read_text().splitlines()]
        table = check_told(schema_of("report.schema.json"), "experiment",
                           [command, "experiment", "--from", path / "out.jsonl", "--format", "json"], {
                               "a row of more": lambda r: r["rows"][0].update(extra=1),
                               "a row of less": lambda r: r["rows"][0].pop("family"),
                               "another outcome": lambda r: r["rows"][0].update(outcome="good"),
                               "no device": lambda r: r.pop("device"),
                               "the rows of another table": lambda r: r.update(table="compare")})
    head, good, failed, profile = records
    for record in records:
        wrong += mismatches(validator, record["schema"], record)
    wrong += mismatches(runs, "the run of a cell", good["run"])
    breaks = {"an unknown key": lambda r: r.update(extra=1), "no outcome": lambda r: r.pop("outcome")}
    wrong += accepted_changes(validator, "a head", head, {"no device": lambda r: r.pop("device"),
                                                          "a short hash": lambda r: r.update(hash="1")})
    wrong += accepted_changes(validator, "a cell", good, {
        **breaks, "no run": lambda r: r.update(run=None), "a cell without a batch": lambda r: r["cell"].pop("batch")})
    wrong += accepted_changes(validator, "a failed cell", failed, {**breaks, "no reason": lambda r: r.update(reason=None)})
    wrong += accepted_changes(validator, "a profile", profile, {**breaks, "no tables": lambda r: r.pop("tables")})
    print(f"{len(records)} records of experiments checked, {wrong + table} mismatches")
    return wrong + table


def check_bench(command):
    """A record of each bench on the CPU, one with a rung that was skipped, and what is recorded under bench/results."""
    validator = schema_of("bench.schema.json")
    checked, wrong = check_results(validator, "convsched.bench/1")
    with tempfile.TemporaryDirectory() as cache:
        records = [json.loads(subprocess.run(
            [command, "bench", *what, "--devices", "cpu", "--cache", cache, "--quiet", "--json", "-"],
            check=True, stdout=subprocess.PIPE, timeout=120).stdout) for what in (
                ["gemm", "--sizes", "16", "--naive-seconds", "0"], ["convtranspose", "--layers", "4x4x4:8:k4s2p1", "--batch", "2"])]
    for record in records:
        wrong += mismatches(validator, f"bench {record['bench']}", record)
        wrong += accepted_changes(validator, f"bench {record['bench']}", record, {
            "an unknown key": lambda r: r.update(extra=1),
            "another schema": lambda r: r.update(schema="convsched.run/1"),
            "another bench": lambda r: r.update(bench="gemm" if r["bench"] != "gemm" else "convtranspose"),
            "no peak": lambda r: r.pop("peak_flops"),
            "a device without identity": lambda r: r["device"].pop("identity"),
            "a rung that is neither measured nor skipped": lambda r: r["rungs"].append({"rung": "naive"}),
            "a rung that is both": lambda r: r["rungs"].append({**r["best"], "rung": "best", "skipped": "no"}),
            "no time": lambda r: r["best"].update(warm_us=0)})
    print(f"{checked + len(records)} records of benches checked, {wrong} mismatches")
    return wrong


def main():
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        print("the Python package jsonschema is not here (Debian: python3-jsonschema)")
        return 1 if os.environ.get("CS_CHECKS_REQUIRED") else 77
    wrong = check_graphs() + check_runs() + check_throughput() + check_specifications()
    wrong += check_recorded_experiments()
    if len(sys.argv) > 1:
        wrong += check_reports(sys.argv[1])
        wrong += check_tradeoff(sys.argv[1])
        wrong += check_layers(sys.argv[1])
        wrong += check_comparison(sys.argv[1])
        wrong += check_experiment(sys.argv[1])
        wrong += check_bench(sys.argv[1])
    else:
        schema_of("report.schema.json")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
