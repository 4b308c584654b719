"""PyTorch's ways to have several requests in flight: a CUDA graph for each, with buffers and a stream of its own, of
one stream or of a stream per branch; eager with a stream for each; on the CPU threads. Compiled: compile_in_flight."""
import concurrent.futures
import gc
import threading
import time

import torch

from in_flight import InFlight
from torch_peers import DTYPES, Net, assign_streams, run_on_streams, set_precision

# As many requests as the host is ahead of the device, at most (as convsched's requests are).
AHEAD = 128


class Slot:
    """Where a request's inputs and outputs lie: in pinned host memory, and on the device what is copied there."""

    def __init__(self, device_inputs):
        self.stream = torch.cuda.Stream()
        self.inputs = device_inputs
        self.host_inputs = [pinned(x) for x in device_inputs]
        for host, given in zip(self.host_inputs, device_inputs):
            host.copy_(given)
        self.graph = self.results = self.host_results = None


def pinned(tensor):
    """Host memory for a tensor, in its type and memory format, so that a copy is plain."""
    return torch.empty_like(tensor, device="cpu", pin_memory=True)


class Streams(InFlight):
    """The eager mode: a request's copies and kernels are launched on its slot's stream, one request after the other."""
    name = "torch.eager"
    how = ("a stream for each request in flight: inputs copied from pinned memory, the forward pass launched kernel by "
           "kernel, outputs copied to pinned memory")
    device = "cuda"

    def __init__(self, graph, params, precision, inputs, layout):
        start = time.perf_counter()
        set_precision(precision)
        self.layout, self.batch, self.slots = layout, inputs[0][0].shape[0], len(inputs)
        self.net = self.make_net(graph, params, DTYPES[precision])
        self.places = [Slot(self.net.given(given)) for given in inputs]
        self.first = torch.cuda.Event(enable_timing=True)
        self.ends = [torch.cuda.Event(enable_timing=True) for _ in range(AHEAD)]
        self.prepare(self.places[0])
        self.burst(1, 1)
        self.first_result_s = time.perf_counter() - start
        for place in self.places[1:]:
            self.prepare(place)
        self.burst(self.slots, self.slots)

    def make_net(self, graph, params, dtype):
        return Net(graph, params, self.device, dtype, self.layout == "nhwc")

    def prepare(self, place):
        """Whatever is to be there before a slot's first request; libraries have chosen and allocated then."""
        with torch.cuda.stream(place.stream), torch.no_grad():
            for _ in range(2):
                place.results = self.net(*place.inputs)
            place.host_results = [pinned(r) for r in place.results]
        torch.cuda.synchronize()

    def run(self, place):
        """Launches the forward pass, on the slot's stream, which is the current one."""
        place.results = self.net(*place.inputs)

    def enqueue(self, place, end):
        """A request with its copies, and the event of its end."""
        torch.cuda.set_stream(place.stream)
        for given, host in zip(place.inputs, place.host_inputs):
            given.copy_(host, non_blocking=True)
        self.run(place)
        for host, result in zip(place.host_results, place.results):
            host.copy_(result, non_blocking=True)
        end.record(place.stream)

    def read_end(self, i):
        event = self.ends[i % AHEAD]
        event.synchronize()
        return self.first.elapsed_time(event) * 1e3

    @torch.no_grad()
    def burst(self, in_flight, n):
        torch.cuda.synchronize()
        before, collects = torch.cuda.current_stream(), gc.isenabled()
        gc.disable()
        try:
            ends = []
            self.first.record(self.places[0].stream)
            for i in range(n):
                if i >= AHEAD:
                    ends.append(self.read_end(i - AHEAD))
                self.enqueue(self.places[i % in_flight], self.ends[i % AHEAD])
            return ends + [self.read_end(i) for i in range(max(0, n - AHEAD), n)]
        finally:
            torch.cuda.set_stream(before)
            torch.cuda.synchronize()
            if collects:
                gc.enable()

    def outputs(self):
        for place in self.places:
            for host in place.host_results:
                host.fill_(float("nan"))
        self.burst(self.slots, 3 * self.slots)
        return [[r.float().numpy().copy() for r in place.host_results] for place in self.places]

    def details(self):
        return {"layout": self.layout, "version": torch.__version__}

    def close(self):
        self.places = self.net = None


class Graphs(Streams):
    name = "torch.cudagraph"
    how = ("a CUDA graph for each request in flight, of one stream, replayed on a stream of its own between copies from "
           "and to pinned memory")

    def prepare(self, place):
        super().prepare(place)
        place.graph = torch.cuda.CUDAGraph()
        # cuBLAS keeps a workspace for each stream, and streams come from a pool: two graphs must not share one.
        torch._C._cuda_clearCublasWorkspaces()
        self.capture(place)
        torch.cuda.synchronize()

    def capture(self, place):
        with torch.no_grad(), torch.cuda.graph(place.graph, stream=place.stream):
            place.results = self.net(*place.inputs)

    def run(self, place):
        place.graph.replay()


class GraphsOfStreams(Graphs):
    name = "torch.cudagraph_streams"
    how = ("a CUDA graph for each request in flight, captured with a stream per branch, replayed on a stream of its own "
           "between copies from and to pinned memory")

    def capture(self, place):
        stream_of, self.count = assign_streams(self.net.order)
        streams = [place.stream] + [torch.cuda.Stream() for _ in range(self.count - 1)]
        with torch.inference_mode(), torch.cuda.graph(place.graph, stream=place.stream):
            place.results = run_on_streams(self.net, place.inputs, streams, stream_of)

    def details(self):
        return {**super().details(), "streams": self.count}


class Threads(InFlight):
    """On the CPU: a thread for each request in flight; they share what one request may use."""
    name = "torch.cpu_threads"
    how = "a Python thread for each request in flight, the processor's threads shared between them; host clock"

    def __init__(self, graph, params, _, inputs, threads):
        start = time.perf_counter()
        self.batch, self.slots, self.threads = inputs[0][0].shape[0], len(inputs), threads
        self.net = Net(graph, params, "cpu", torch.float32)
        self.host_inputs = [[torch.from_numpy(x) for x in given] for given in inputs]
        self.inputs = [[x.clone() for x in given] for given in self.host_inputs]
        torch.set_num_threads(threads)
        self.host_results = [[r.clone() for r in self.net(*self.inputs[0])] for _ in inputs]
        self.first_result_s = time.perf_counter() - start

    def work(self, slot, in_flight, n, ready):
        """Requests slot, slot + in_flight, …; their ends."""
        torch.set_num_threads(max(1, self.threads // in_flight))
        ready.wait()
        ends = []
        with torch.no_grad():
            for _ in range(slot, n, in_flight):
                for given, host in zip(self.inputs[slot], self.host_inputs[slot]):
                    given.copy_(host)
                for host, result in zip(self.host_results[slot], self.net(*self.inputs[slot])):
                    host.copy_(result)
                ends.append(time.perf_counter_ns() / 1e3)
        return ends

    def burst(self, in_flight, n):
        ready = threading.Barrier(in_flight)
        try:
            with concurrent.futures.ThreadPoolExecutor(in_flight) as pool:
                return sum(pool.map(lambda slot: self.work(slot, in_flight, n, ready), range(in_flight)), [])
        finally:
            torch.set_num_threads(self.threads)

    def outputs(self):
        for results in self.host_results:
            for host in results:
                host.fill_(float("nan"))
        self.burst(self.slots, 2 * self.slots)
        return [[r.numpy().copy() for r in results] for results in self.host_results]

    def details(self):
        return {"version": torch.__version__, "threads": self.threads}
