"""Records as files: JSON lines, samples to statistics, what is known of the commit and the command."""
import json
import pathlib
import shlex
import subprocess
import sys
from statistics import fmean, median, pstdev, quantiles

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))  # graph_json, torch_graph

RUN = "convsched.run/1"

# What another system's outputs may differ from float64, relative L2: wide enough for any correct
# implementation of the precision, narrow enough to tell that the same function was computed.
SANITY = {"f32": 1e-4, "tf32": 2e-2, "f16": 2e-2, "bf16": 1e-1}


# numpy is imported where it is needed: what only reads and writes records goes without it.
def statistics(samples):
    samples = [float(s) for s in samples]
    deciles = quantiles(samples, n=10, method="inclusive") if len(samples) > 1 else samples
    return {"median": median(samples), "p10": deciles[0], "p90": deciles[-1],
            "variation": pstdev(samples) / fmean(samples), "samples": samples}


def rel_l2(found, wanted):
    """Relative L2 distance of lists of arrays, over all of them together."""
    import numpy
    difference = sum(float(numpy.sum((f.astype(numpy.float64) - w) ** 2)) for f, w in zip(found, wanted))
    size = sum(float(numpy.sum(w.astype(numpy.float64) ** 2)) for w in wanted)
    return float(numpy.sqrt(difference / size))


def commit(given):
    if given:
        return given
    result = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True,
                            text=True, check=False)
    return result.stdout.strip() or "unknown"


def commit_of(record):
    """Short, and whether the tree had changes: "3e0f4db305d7-dirty"."""
    commit, _, changed = record["commit"].partition("-")
    return commit[:12] + ("-" + changed if changed else "")


def versions(device):
    """Of what a device's description tells, for a page."""
    return ", ".join(f"{key} {device[key]}" for key in ("driver", "cuda", "cudnn", "onednn") if key in device)


def command_line():
    return shlex.join(["python3", *sys.argv])


def append(path, record):
    """One JSON line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read(path):
    """The records of a file: one JSON document (an object or a list) or JSON lines."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        document = json.loads(text)
        return document if isinstance(document, list) else [document]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def of_schema(path, schema=RUN):
    """Those of one kind; one that does not tell its schema is of a run."""
    return [record for record in read(path) if record.get("schema", RUN) == schema]
