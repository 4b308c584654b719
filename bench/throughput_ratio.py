"""How many times the throughput of PyTorch's best convsched's best has, from a convsched.throughput/1 record."""
import dataclasses

import cell_table
from peer_ratio import is_peer

SCHEMA = "convsched.throughput/1"


@dataclasses.dataclass
class Best:
    """A contender with the number of requests in flight at which it is the fastest."""
    contender: dict
    rate: dict

    @property
    def images_per_s(self):
        return self.rate["final"]["images_per_s"]["median"]

    @property
    def joules(self):
        """An image; None: not known."""
        found = self.rate.get("joules_per_image")
        return found["median"] if found else None


@dataclasses.dataclass
class Ratio:
    ours: Best | None
    peer: Best | None
    ratio: float | None  # images a second of ours over the peer's: more than 1, ours is faster
    interval: tuple | None  # 95%, of the ratio of windows taken in the same round
    joules: float | None  # an image of the peer's over ours: more than 1, ours needs less


def finals(record):
    """Everything with final windows whose results are right."""
    return [Best(contender, rate) for contender in record["contenders"] if contender["verification"]["passed"]
            for rate in contender["rates"] if rate.get("final")]


def paired(ours, peer):
    """None: not as many windows of each."""
    samples = [best.rate["final"]["images_per_s"]["samples"] for best in (ours, peer)]
    if not samples[0] or len(samples[0]) != len(samples[1]):
        return None
    return cell_table.interval([a / b for a, b in zip(*samples)])


def of(record):
    fastest = lambda found: max(found, key=lambda best: best.images_per_s, default=None)
    ours = fastest([best for best in finals(record) if not is_peer(best.contender)])
    peer = fastest([best for best in finals(record) if is_peer(best.contender)])
    if not ours or not peer:
        return Ratio(ours, peer, None, None, None)
    joules = peer.joules / ours.joules if peer.joules and ours.joules else None
    return Ratio(ours, peer, ours.images_per_s / peer.images_per_s, paired(ours, peer), joules)
