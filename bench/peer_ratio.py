"""How many times as fast convsched is as the best of the other systems, from a record's `policies`."""
import dataclasses

import cell_table


@dataclasses.dataclass
class Ratio:
    peer: dict | None  # the entry of the fastest other system that counts
    ours: dict | None  # that of our fastest policy
    ratio: float | None  # its latency over ours: more than 1, ours is faster
    interval: tuple | None  # 95%, of the ratio of samples taken in turn
    coselect: float | None  # the same over coselect alone


def is_peer(entry):
    """Other systems' names have a dot: torch.cudagraph."""
    return "." in entry["name"]


def counts(entry):
    """Whether an entry may be the best: measured (a difference of two times may be nothing but noise), right, and
    not printed for information alone."""
    verification = entry.get("verification")
    return (bool(entry.get("latency_us")) and median(entry) > 0 and not entry.get("outside_ratio")
            and (verification is None or bool(verification["passed"])))


def median(entry):
    return entry["latency_us"]["median"]


def over(peer, ours):
    return median(peer) / median(ours) if peer and ours else None


def paired(peer, ours):
    """Interval of the ratio of samples taken in turn; None: not as many of each."""
    samples = [entry["latency_us"].get("samples", ()) for entry in (peer, ours)]
    if not samples[0] or len(samples[0]) != len(samples[1]):
        return None
    return cell_table.interval([a / b for a, b in zip(*samples)])


def of(record):
    kept = [entry for entry in record["policies"] if counts(entry)]
    peer = min((e for e in kept if is_peer(e)), key=median, default=None)
    ours = min((e for e in kept if not is_peer(e)), key=median, default=None)
    coselect = next((e for e in kept if e["name"] == "coselect"), None)
    return Ratio(peer, ours, over(peer, ours), paired(peer, ours) if peer and ours else None, over(peer, coselect))
