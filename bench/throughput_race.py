"""Throughput of contenders, each with several numbers of requests in flight: all of them in a few short windows, then
the best of either side in many, then joules of the best of each. Windows are taken in turn, another one first each round."""
import dataclasses
import gc
import time

MOST_REQUESTS = 1_000_000
# Before a window whose energy is read: the counter lags behind by a tenth of a second, and what it lags by is to be this
# contender's own.
ENERGY_LEAD_S = 0.25


@dataclasses.dataclass(eq=False)
class Point:
    """A contender with so many requests in flight."""
    contender: object
    in_flight: int
    per_s: float = 0  # requests a second, roughly
    screening: list = dataclasses.field(default_factory=list)  # of Rate
    final: list = dataclasses.field(default_factory=list)
    joules: list = dataclasses.field(default_factory=list)  # an image, a sample a window

    def window(self, seconds):
        requests = min(max(round(seconds * self.per_s), self.in_flight), MOST_REQUESTS)
        return self.contender.window(self.in_flight, requests)


def median(rates):
    ordered = sorted(rate.images_per_s for rate in rates)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def calibrate(point, window_s):
    """How many requests fill a window, from ever longer ones, which warm up, too."""
    point.per_s = 0
    for part in (0, 0.3, 1):
        point.per_s = point.window(part * window_s).images_per_s / point.contender.batch


class Race:
    """`give_up(contender, error)` is told of one that raises, which is out of the race if that returns; `settle`: seconds
    of rest before each window, in which worker threads of others go to sleep."""

    def __init__(self, contenders, in_flight, settle, give_up):
        self.points = [Point(c, n) for c in contenders for n in in_flight]
        self.settle, self.give_up = settle, give_up

    def attempt(self, work, point):
        if point not in self.points:  # another of its contender's has failed
            return
        time.sleep(self.settle)
        try:
            work(point)
        except Exception as error:  # whatever a system may raise
            self.give_up(point.contender, error)
            self.points = [p for p in self.points if p.contender is not point.contender]

    def judge(self, contender, work):
        """Something of a contender itself; one that raises is out, as in a window."""
        points = [p for p in self.points if p.contender is contender]
        if points:
            self.attempt(lambda p: work(p.contender), points[0])

    def rounds(self, points, count, work):
        for index in range(count):
            first = index % len(points) if points else 0
            for point in points[first:] + points[:first]:
                self.attempt(work, point)

    def screen(self, rounds, window_s):
        for point in list(self.points):
            self.attempt(lambda p: calibrate(p, window_s), point)
        gc.collect()
        self.rounds(list(self.points), rounds, lambda p: p.screening.append(p.window(window_s)))

    def finish(self, chosen, rounds, window_s):
        """`chosen`: points; a round in front warms up and tells how many requests fill a window."""
        self.rounds(chosen, 1, lambda p: calibrate(p, window_s))
        self.rounds(chosen, rounds, lambda p: p.final.append(p.window(window_s)))

    def weigh(self, chosen, rounds, window_s, energy):
        """Joules an image; `energy()`: what the board has used so far."""
        def work(point):
            point.window(ENERGY_LEAD_S)
            before = energy()
            rate = point.window(window_s)
            point.joules.append((energy() - before) / (rate.all_requests * point.contender.batch))

        self.rounds(chosen, rounds, work)


def best(points, count, of=lambda p: p.screening):
    """The so many fastest points."""
    return sorted((p for p in points if of(p)), key=lambda p: -median(of(p)))[:count]
