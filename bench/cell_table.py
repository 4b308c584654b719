"""Cells of coselect's table: the latency of each policy in a convsched.run/1 record, and what coselect gains."""
import math

POLICIES = ("sequential", "streams", "opara", "ios", "coselect")
MODELS = ("googlenet_bn", "googlenet", "inception_v3", "resnet50", "squeezenet1_1", "densenet121")
BATCHES = (1, 8, 32, 128)
DTYPES = ("tf32", "f16")
MARGIN = 1.03  # less is taken for a draw


def cell_of(record):
    return record["model"], record["dtype"], record["batch"]


def cell_name(cell):
    """As options take it: MODEL/DTYPE/BATCH."""
    return "/".join(map(str, cell))


def parse_cell(text):
    model, dtype, batch = text.rsplit("/", 2)
    return model, dtype, int(batch)


def microseconds(policy):
    """The measured median, or what is predicted for a simulated device; None: neither."""
    if "latency_us" in policy:
        return policy["latency_us"]["median"]
    return policy["predicted_us"] if policy.get("predicted") else None


def latencies(record):
    """Median latency by name, of our policies alone (other systems' names have a dot)."""
    found = {policy["name"]: microseconds(policy) for policy in record["policies"]}
    return {name: us for name, us in found.items() if us is not None and "." not in name}


def is_complete(record):
    """Whether the record has all policies beside one another."""
    return set(POLICIES) <= set(latencies(record))


def gains(record):
    """How many times as fast coselect is as the best other policy, `sequential` and `streams`."""
    us = latencies(record)
    best = min(us[name] for name in POLICIES if name != "coselect")
    return {"best other": best / us["coselect"], "sequential": us["sequential"] / us["coselect"],
            "streams": us["streams"] / us["coselect"]}


def interval(ratios, confidence=0.95):
    """Of the median, at least so confident, from order statistics: the k-th smallest and the k-th largest."""
    ordered, n = sorted(ratios), len(ratios)
    missed = lambda k: sum(math.comb(n, i) for i in range(k)) / 2 ** n  # on one side
    k = max((k for k in range(1, n // 2 + 1) if missed(k) <= (1 - confidence) / 2), default=1)
    return ordered[k - 1], ordered[n - k]


def plan_of(record, name):
    """What a policy runs: its tasks in launch order, but for the times predicted of them; None: the record has none."""
    for policy in record["policies"]:
        if policy["name"] == name and policy.get("tasks"):
            return [{k: v for k, v in task.items() if not k.endswith("_us")} for task in policy["tasks"]]
    return None


def is_same_plan(record, other):
    """Whether coselect runs what another policy does."""
    mine = plan_of(record, "coselect")
    return mine is not None and mine == plan_of(record, other)


def is_slower(record, than):
    """Whether coselect is slower than another policy beyond chance: samples taken in turn are compared in pairs. Where
    times are predicted there are none, and they are compared as they are. The same plan is not slower than itself."""
    if is_same_plan(record, than):
        return False
    taken = {p["name"]: p.get("latency_us", {}).get("samples", ()) for p in record["policies"]}
    pairs = list(zip(taken["coselect"], taken[than]))
    us = latencies(record)
    return interval([a / b for a, b in pairs])[0] > 1 if pairs else us["coselect"] > us[than]


def samples(record):
    """The fewest of any policy; 0 where times are predicted."""
    return min(len(p.get("latency_us", {}).get("samples", ())) for p in record["policies"])


def verdict(record):
    verification = record.get("verification")
    if verification is None:
        return "not checked"
    return "ok" if verification["passed"] else "WRONG"
