#!/usr/bin/env python3
"""Prints docs/spaa-reproduction.md: what of Pourghassemi et al., "On the Limits of Parallelizing Convolutional Neural
Networks on GPUs" (SPAA 2020), still holds, from what `convsched experiment experiments/spaa2020.json` recorded
(bench/results/spaa2020/*.jsonl, or the files given).

    bench/spaa_page.py [FILE.jsonl…] > docs/spaa-reproduction.md
"""
import itertools
import pathlib
import re
import statistics
import sys

import records

HOLDS, PARTLY, NOT, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"

# What the paper counts in GoogLeNet; its tables' figures are in the records (`report --paper`).
PAPER_PAIRS = 27
FIRST, THIRD = ("inception_3a/3x3", "inception_3a/5x5"), "inception_4a/5x5"  # the nodes of its tables
MODULES = ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b")

# Thresholds of verdicts.
FULL = 90          # percent of a resource: a kernel that takes it leaves next to nothing
MOST_NODES = 0.75  # share of nodes, or of pairs, that "holds" wants
SLOWER = 1.03      # times: less is no difference
LITTLE, SOME = 1.05, 1.20  # gain: up to LITTLE "gains little" holds, up to SOME in part
NEAR, FAR = 1.5, 3.0       # FFT_TILING's time over the fastest named algorithm's: a complement up to NEAR, in part to FAR

RESOURCES = (("registers_pct", "registers"), ("shared_pct", "shared memory"), ("threads_pct", "threads"),
             ("blocks_pct", "blocks"))
# Kernels that only move or finish what a convolution computes.
HELPERS = re.compile(r"cs_copy|cs_elementwise|nhwcToNchw|nchwToNhwc|nchw2nhwc|nhwc2nchw|convertTensor|memset", re.I)


def size(count):
    """Bytes for a person."""
    if count is None:
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def table(head, rows):
    """Markdown; a head that ends in ':' is aligned right."""
    yield "| " + " | ".join(h.rstrip(":") for h in head) + " |"
    yield "|" + "|".join("--:" if h.endswith(":") else "---" for h in head) + "|"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"


class Case:
    """What one file tells of GoogLeNet at one batch in one precision."""

    def __init__(self, name, head, profile, cells):
        self.name, self.head = name, head
        self.of = profile["case"]
        self.tables = {}
        for told in profile["tables"]:
            if "failed" not in told:
                self.tables.setdefault(told["table"], []).append(told)
        self.report = profile.get("report") or {}
        self.cells = cells

    def title(self):
        how = ", whole networks predicted" if self.head["predicted"] else ""
        return f"{self.head['device']['name']}, {self.of['dtype']}, batch {self.of['batch']}{how}"

    def rows(self, kind, index=-1):
        found = self.tables.get(kind, [])
        return found[index]["rows"] if found else []

    def cell(self, family, limit):
        for cell in self.cells:
            at = cell["cell"]
            if at["family"] == family and at["workspace_limit"] == limit and cell.get("run"):
                return {policy["name"]: policy for policy in cell["run"]["policies"]}
        return {}

    def limits(self, family):
        return sorted(c["cell"]["workspace_limit"] for c in self.cells if c["cell"]["family"] == family and c.get("run"))


def load(paths):
    """The newest record of each device, precision and batch counts; files' names begin with their dates."""
    found = {}
    for path in sorted(paths):
        lines = records.read(path)
        head, last = lines[0], {}
        for line in lines[1:]:
            last[line["key"]] = line
        for line in last.values():
            if line["schema"] != "convsched.experiment-profile/1":
                continue
            of = line["case"]
            cells = [c for c in last.values() if c["schema"] == "convsched.experiment-cell/1" and
                     (c["cell"]["dtype"], c["cell"]["batch"], c["cell"]["model"]) == (of["dtype"], of["batch"], of["model"])]
            if cells:
                found[head["device"]["name"], of["dtype"], of["batch"]] = Case(path.name, head, line, cells)
    return list(found.values())


def latency(policy):
    told = policy.get("latency_us")
    return told["median"] if told else policy["predicted_us"]


# ---- 1: what kernels take of an SM ----

def convolution_kernels(rows):
    """By node and candidate the kernels that compute, of which something is known."""
    found = {}
    for row in rows:
        known = row["kernel"] and row["registers_pct"] is not None
        if known and not row["candidate"].startswith("paper") and not HELPERS.search(row["kernel"]):
            found.setdefault((row["node"], row["candidate"]), []).append(row)
    return found


def largest_share(row):
    return max((row[key], name) for key, name in RESOURCES if row[key] is not None)


def fastest_kernels(case):
    """By node the computing kernel of its fastest candidate that takes the most; convolutions alone."""
    return {node: max(rows, key=largest_share) for (node, candidate), rows in
            convolution_kernels(case.rows("resources")).items() if not re.search("pool|softmax|lrn", candidate)}


def fits(resident, other):
    """Whether one block of `other` finds room on an SM that holds as many of `resident` as it can."""
    return all(resident[key] + other[key] / max(other["blocks_per_sm"], 1) <= 100 for key, _ in RESOURCES)


def pairs_without_room(kernels):
    pairs = [(f"inception_{m}/3x3", f"inception_{m}/5x5") for m in MODULES]
    known = [(kernels[a], kernels[b]) for a, b in pairs if a in kernels and b in kernels]
    return sum(not fits(a, b) and not fits(b, a) for a, b in known), len(known)


def claim_full(case):
    kernels = fastest_kernels(case)
    named = [largest_share(kernels[node])[0] for node in FIRST if node in kernels]
    if not kernels or len(named) < len(FIRST):
        return UNKNOWN, "–"
    full = sum(largest_share(row)[0] >= FULL for row in kernels.values())
    without, pairs = pairs_without_room(kernels)
    good = [min(named) >= FULL, full >= MOST_NODES * len(kernels), pairs and without >= MOST_NODES * pairs]
    verdict = HOLDS if all(good) else PARTLY if any(good) else NOT
    return verdict, (f"{named[0]:.0f}% and {named[1]:.0f}%; {full} of {len(kernels)} convolutions' kernels take {FULL}% or "
                     f"more; in {without} of {pairs} pairs 3×3, 5×5 neither finds room beside the other")


def paper_full(case):
    shares = {}
    for row in case.rows("resources", 0):
        if row["candidate"] == "paper: PRECOMP_GEMM":
            shares[row["node"]] = largest_share(row)[0]
    return " and ".join(f"{shares[node]:.0f}%" for node in FIRST if node in shares) + " of an SM (PRECOMP_GEMM)"


# ---- 2: a complement that leaves room ----

def named_algorithms(case, node):
    """name → (microseconds, workspace) of the paper's algorithms as this library has them."""
    found = {}
    for row in case.rows("workspace"):
        if row["node"] != node or not row["family"].startswith("cudnn.legacy") or row["cold_us"] is None:
            continue
        if row["algorithm"] not in found or row["cold_us"] < found[row["algorithm"]][0]:
            found[row["algorithm"]] = (row["cold_us"], row["workspace_bytes"])
    return found


def paper_algorithms(case):
    return {row["algorithm"]: (row["paper_ms"], row["paper_workspace_bytes"]) for row in case.rows("workspace")
            if row["node"] == THIRD and row["paper_ms"] is not None}


def complement_ratio(algorithms):
    if "FFT_TILING" not in algorithms:
        return None
    return algorithms["FFT_TILING"][0] / min(us for us, _ in algorithms.values())


def claim_complement(case):
    ratios = [complement_ratio(named_algorithms(case, node)) for node in (*FIRST, THIRD)]
    ratios = [r for r in ratios if r]
    if not ratios:
        return UNKNOWN, "no FFT_TILING"
    verdict = HOLDS if max(ratios) <= NEAR else PARTLY if min(ratios) <= FAR else NOT
    return verdict, f"FFT_TILING takes {min(ratios):.1f} to {max(ratios):.1f} times as long as the fastest named algorithm"


def paper_complement(case):
    return f"FFT_TILING takes {complement_ratio(paper_algorithms(case)):.1f} times as long (third module's 5×5)"


# ---- 3: faster algorithms want workspace ----

def workspace_price(algorithms):
    """(gain of the fastest over the fastest with at most 64 KiB, workspace of the fastest)."""
    free = [us for us, count in algorithms.values() if count <= 65536]
    us, count = min(algorithms.values())
    return (min(free) / us if free else None), count


def claim_workspace(case):
    named = named_algorithms(case, THIRD)
    if not named:
        return UNKNOWN, "–"
    gain, count = workspace_price(named)
    limits = case.limits("all")
    networks = [latency(case.cell("all", limit)["sequential"]) for limit in (limits[:1] + limits[-1:])]
    network = networks[0] / networks[-1] if len(limits) > 1 else None
    good = [gain is not None and gain >= SLOWER and count > 0, network is not None and network >= SLOWER]
    verdict = HOLDS if all(good) else PARTLY if any(good) else NOT
    text = (f"the fastest named algorithm takes {size(count)} and is {gain:.2f}× as fast as the fastest with next to none"
            if gain else f"the fastest named algorithm takes {size(count)}")
    if network:
        text += f"; the network is {network:.2f}× as fast with {size(limits[-1])} as with {size(limits[0])}"
    return verdict, text


def paper_workspace(case):
    gain, count = workspace_price(paper_algorithms(case))
    return f"the fastest takes {size(count)} and is {gain:.2f}× as fast as the fastest with next to none"


def claim_size(case):
    named, paper = named_algorithms(case, THIRD), paper_algorithms(case)
    if not named or not paper:
        return UNKNOWN, "–"
    most, told = max(count for _, count in named.values()), max(count for _, count in paper.values())
    limits = case.limits("all")
    best = min(latency(case.cell("all", limit)["sequential"]) for limit in limits)
    enough = next(limit for limit in limits if latency(case.cell("all", limit)["sequential"]) <= SLOWER * best)
    verdict = HOLDS if most >= told / 2 else PARTLY if most >= 2 ** 30 or enough >= 2 ** 30 else NOT
    return verdict, (f"at most {size(most)} for the third module's 5×5; the network is within 3% of its best from a limit of "
                     f"{size(enough)} on")


def paper_size(case):
    return f"up to {size(max(count for _, count in paper_algorithms(case).values()))} for the third module's 5×5"


# ---- 4: streams alone ----

def gain_of(case, family, policy):
    """(gain, limit): over sequential, in the cell of the largest workspace limit that has the policy."""
    for limit in reversed(case.limits(family)):
        cell = case.cell(family, limit)
        if policy in cell:
            return latency(cell["sequential"]) / latency(cell[policy]), limit
    return None, None


def claim_streams(case):
    gains = {family: gain_of(case, family, "streams")[0] for family in ("legacy", "all")}
    gains = {family: gain for family, gain in gains.items() if gain}
    if not gains:
        return UNKNOWN, "–"
    most = max(gains.values())
    verdict = HOLDS if most < LITTLE else PARTLY if most < SOME else NOT
    names = {"legacy": "with the paper's algorithms", "all": "with all candidates"}
    text = "; ".join(f"{gain:.2f}× {names[family]}" for family, gain in gains.items())
    sets = (case.report.get("coruns") or {}).get("list", [])
    alone = [told["serial_us"] / told["fastest_alone_us"] for told in sets if told.get("fastest_alone_us")]
    if alone:
        text += (f"; of {len(alone)} sets of independent convolutions, run together with the candidates that are fastest alone, "
                 f"the median gains {statistics.median(alone):.2f}×")
    return verdict, text


# ---- 5: complementary algorithms ----

def won_sets(case):
    """Sets whose candidates chosen together are faster, each a list of its rows."""
    rows = case.rows("complementary")
    return [list(group) for _, group in itertools.groupby(rows, key=lambda row: row["set"])]


def claim_pairs(case):
    if "complementary" not in case.tables:
        return UNKNOWN, "–"
    summary, sets = case.tables["complementary"][-1]["summary"], won_sets(case)
    pairs = sum(len(rows) == 2 for rows in sets)
    verdict = HOLDS if pairs >= PAPER_PAIRS else PARTLY if pairs else NOT
    return verdict, (f"{pairs} pairs, {len(sets) - pairs} larger sets gain 3% or more, measured together, of {summary['sets']} "
                     "sets looked at")


def claim_partition(case):
    """The paper: without a way to partition SMs complementary algorithms could not be made to run together."""
    sets = won_sets(case)
    if "complementary" not in case.tables:
        return UNKNOWN, "–"
    if not sets:
        return HOLDS, "no set gains"
    gains = [rows[0]["gain"] for rows in sets]
    overlaps = [rows[0]["chosen_overlap"] for rows in sets if rows[0]["chosen_overlap"] is not None]
    text = f"without any partition sets gain up to {max(gains):.2f}×, in the median {statistics.median(gains):.2f}×"
    if overlaps:
        text += f", at least two of their kernels running in {100 * statistics.median(overlaps):.0f}% of the time"
    best, limit = gain_of(case, "all", "coselect")
    if best:
        streams = latency(case.cell("all", limit)["streams"]) / latency(case.cell("all", limit)["coselect"])
        text += f"; the network is {streams:.2f}× as fast as with streams alone, {best:.2f}× as fast as sequential"
    return NOT, text


CLAIMS = (
    ("1. The fastest kernels fill a resource of every SM, so that no second kernel finds room",
     lambda case: paper_full(case), claim_full),
    ("2. FFT_TILING is a complement: it fills another resource, at little cost of time", paper_complement, claim_complement),
    ("3. Faster algorithms want more workspace", paper_workspace, claim_workspace),
    ("4. Workspaces are so large that memory decides what can run together", paper_size, claim_size),
    ("5. Streams alone gain little", lambda case: "no second convolution becomes resident", claim_streams),
    ("6. Pairs with complementary algorithms exist", lambda case: f"{PAPER_PAIRS} pairs, counted, not run", claim_pairs),
    ("7. They cannot be run together without partitioning SMs", lambda case: "not possible on its GPU", claim_partition))


def claims_table(cases):
    head = ["claim", "the paper, K40, cuDNN 7.6"]
    for case in cases:
        head += [f"{case.title()}", "verdict"]
    rows = []
    for claim, paper, judge in CLAIMS:
        row = [claim, paper(cases[0])]
        for case in cases:
            verdict, text = judge(case)
            row += [text, f"**{verdict}**"]
        rows.append(row)
    return table(head, rows)


def resources_table(case):
    rows = []
    paper = [row for row in case.rows("resources", 0) if row["candidate"].startswith("paper")]
    kernels = fastest_kernels(case)
    for node in FIRST:
        if node in kernels:
            rows.append([node, f"here: {kernels[node]['candidate']}"] +
                        [f"{kernels[node][key]:.0f}" for key, _ in RESOURCES] + [f"{kernels[node]['waves']:.2f}"])
        for row in paper:
            if row["node"] == node:
                rows.append([node, row["candidate"]] + [f"{row[key]:.0f}" for key, _ in RESOURCES] + ["–"])
    return table(["node", "algorithm"] + [f"{name} %:" for _, name in RESOURCES] + ["waves:"], rows)


def workspaces_table(case):
    named, paper = named_algorithms(case, THIRD), paper_algorithms(case)
    rows = []
    for name in sorted(paper, key=lambda name: paper[name][0]):
        us, count = named.get(name, (None, None))
        rows.append([name, size(paper[name][1]), f"{paper[name][0]:.0f}", size(count), f"{us:.1f}" if us else "–"])
    others = [row for row in case.rows("workspace") if row["node"] == THIRD and row["cold_us"] is not None and
              not row["family"].startswith("cudnn.legacy")]
    if others:
        best = min(others, key=lambda row: row["cold_us"])
        rows.append([f"fastest of the others: {best['candidate']}", "–", "–", size(best["workspace_bytes"]),
                     f"{best['cold_us']:.1f}"])
    return table(["algorithm", "paper's workspace:", "paper's ms:", "workspace here:", "µs here:"], rows)


def limits_table(case):
    rows = []
    for family in ("legacy", "all"):
        for limit in case.limits(family):
            cell = case.cell(family, limit)
            us = {name: latency(policy) for name, policy in cell.items()}
            rows.append([family, size(limit)] + [f"{us[p]:.0f}" if p in us else "–" for p in ("sequential", "streams", "coselect")] +
                        [f"{us['sequential'] / us[p]:.2f}" if p in us else "–" for p in ("streams", "coselect")])
    return table(["candidates", "workspace limit", "sequential µs:", "streams µs:", "coselect µs:", "streams gain:",
                  "coselect gain:"], rows)


def sets_table(case):
    rows = []
    for group in won_sets(case)[:10]:
        first = group[0]
        overlap = f"{100 * first['chosen_overlap']:.0f}" if first["chosen_overlap"] is not None else "–"
        rows.append([" + ".join(row["node"] for row in group), f"{first['serial_us']:.1f}", f"{first['fastest_alone_us']:.1f}",
                     f"{first['chosen_us']:.1f}", f"{first['gain']:.2f}", overlap, first["limiter"] or "–"])
    return table(["together", "one after the other µs:", "fastest alone, together µs:", "chosen together µs:", "gain:",
                  "overlap %:", "what kept the fastest apart"], rows)


HEAD = f"""# The SPAA paper, again

Made by `bench/spaa_page.py` from what `convsched experiment experiments/spaa2020.json` recorded under `bench/results/spaa2020/`.
The paper: Pourghassemi et al., "On the Limits of Parallelizing Convolutional Neural Networks on GPUs", SPAA 2020, GoogLeNet on a
Tesla K40 with cuDNN 7.6. Its figures are for another GPU, library and batch, so shares, ratios and counts are set beside each other,
not times. Legacy candidates are the algorithms that the paper names, as today's cuDNN has them.

## What holds

Verdicts follow from the numbers by these thresholds. 1: the fastest kernels of both nodes of the paper's Table 1 take {FULL}% of a
resource, and so do {MOST_NODES:.0%} of all convolutions', and in {MOST_NODES:.0%} of the pairs (3×3, 5×5) no block of either fits beside
the other's resident ones (some of the three: in part). 2: FFT_TILING takes at most {NEAR}× (to {FAR:.0f}×: in part) the fastest named
algorithm's time. 3: the fastest named algorithm takes workspace and is {SLOWER - 1:.0%} faster than those that take at most 64 KiB, and
the network is {SLOWER - 1:.0%} faster with the largest limit than with the least (one of both: in part). 4: half of the paper's workspace, or
more (1 GiB: in part). 5: a gain below {LITTLE} (below {SOME}: in part). 6: {PAPER_PAIRS} pairs (one: in part). 7: no set gains.
Kernels that only move data or add bias and activation are left out of 1.
"""


def main():
    paths = [pathlib.Path(p) for p in sys.argv[1:]] or list((records.ROOT / "bench/results/spaa2020").glob("*.jsonl"))
    cases = load(paths)
    if not cases:
        sys.exit("spaa_page.py: nothing recorded")
    print(HEAD)
    for line in claims_table(cases):
        print(line)
    for case in cases:
        print(f"\n## {case.title()}\n\nRecord `{case.name}`, commit {case.head['commit'][:12]}, {case.head['started'][:10]}.")
        if case.head["predicted"]:
            print("Tables of nodes and sets are of measurements; whole networks' times are the SM model's predictions.")
        for heading, lines in (("Table 1: shares of an SM, first module", resources_table(case)),
                               ("Table 2: workspace and time, the third module's 5×5", workspaces_table(case)),
                               ("The network under workspace limits", limits_table(case)),
                               ("Sets that gain most from algorithms chosen together", sets_table(case))):
            print(f"\n### {heading}\n")
            for line in lines:
                print(line)


if __name__ == "__main__":
    main()
