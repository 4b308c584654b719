"""Contenders of a comparison of throughput, and convsched as one: several requests in flight, each with its inputs
copied in from host memory and its outputs copied out.

A contender has a name, `slots` (the most requests in flight), window() (a Rate), outputs() and details() as others
(contenders.py)."""
import dataclasses
import time

import numpy

import convsched
from contenders import Contender

# Requests before the timed ones and behind them for each in flight, so that as many are in flight throughout: what
# convsched's own windows have.
LEAD, TAIL = 2, 1


@dataclasses.dataclass
class Rate:
    """What a window of requests back to back tells; times are those of the ends of requests."""
    requests: int  # timed
    all_requests: int
    images_per_s: float  # of the timed requests, from the end of the one before the first to the last end
    host_images_per_s: float  # of all, by the host's clock, filling and draining in it


def rate_of(ends, in_flight, batch, seconds):
    """Of LEAD + timed + TAIL requests: when each ended (microseconds, in any order; they may overtake each other), and
    `seconds` that the host took for all."""
    lead, tail = LEAD * in_flight, TAIL * in_flight
    timed = len(ends) - lead - tail
    if timed < 1:
        raise ValueError(f"{len(ends)} requests, wanted more than {lead + tail} with {in_flight} in flight")
    ordered = sorted(ends)
    passed = (ordered[lead + timed - 1] - ordered[lead - 1]) * 1e-6
    return Rate(timed, len(ends), timed * batch / passed, len(ends) * batch / seconds)


class InFlight(Contender):
    """`inputs`: a list of arrays for each slot, as many as `slots`."""
    layout = None
    slots = 1
    batch = 1

    def window(self, in_flight, requests):
        """`requests` timed, and LEAD and TAIL for each in flight beside them."""
        start = time.perf_counter()
        ends = self.burst(in_flight, requests + (LEAD + TAIL) * in_flight)
        return rate_of(ends, in_flight, self.batch, time.perf_counter() - start)

    def burst(self, in_flight, n):
        """n requests, number i in slot i % in_flight, as fast as they go; waits for all and gives their ends,
        microseconds from any beginning."""
        raise NotImplementedError

    def outputs(self):
        """For each slot what a request gave while requests were in flight in all of them."""
        raise NotImplementedError


class Convsched(InFlight):
    """cs_pipeline_window."""

    def __init__(self, device, graph, policy, batch, precision, inputs, name=None, **options):
        self.name, self.batch, self.slots, self.inputs = name or policy, batch, len(inputs), inputs
        self.results = [[numpy.zeros(shape, numpy.float32) for shape in graph.output_shapes(batch)] for _ in inputs]
        start = time.perf_counter()
        self.session = convsched.Session(device, graph, policy, batch, precision, **options)
        self.session.run(inputs[0], self.results[0])
        self.first_result_s = time.perf_counter() - start
        self.pipeline = None
        try:
            self.pipeline = convsched.Pipeline(self.session, self.slots)
        except convsched.Error:
            self.close()
            raise
        self.how = self.pipeline.how()

    def window(self, in_flight, requests):
        found = self.pipeline.window(in_flight, requests)
        return Rate(found.requests, found.all_requests, found.images_per_s, found.host_images_per_s)

    def outputs(self):
        for slot, inputs in enumerate(self.inputs):
            self.pipeline.submit(slot, inputs)
        for slot, results in enumerate(self.results):
            self.pipeline.wait(slot, results)
        return [[r.copy() for r in results] for results in self.results]

    def details(self):
        info = self.session.info()
        alone, together = self.session.verify("sample").as_record(), self.pipeline.verify().as_record()
        kept = ("streams", "split", "kernels", "arena_bytes", "workspace_bytes", "timings_s", "graph_hash")
        return {**{key: info[key] for key in kept if key in info}, "slots_arena_bytes": self.pipeline.arena_bytes(),
                "verification": {**alone, "passed": alone["passed"] and together["passed"], "in_flight": together}}

    def close(self):
        if self.pipeline:
            self.pipeline.close()
        self.session.close()
