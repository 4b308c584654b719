"""torch.compile with several requests in flight: compiled kernels in a CUDA graph for each request; and the mode
reduce-overhead as it comes, whose one CUDA graph runs one request at a time while others are copied."""
import torch

from torch_compile import Plain, compiled
from torch_in_flight import Graphs


class CompiledGraphs(Graphs):
    """Compiled once; a graph of each slot captured by hand."""
    name = "torch.compile_cudagraph"
    how = ("torch.compile's kernels (mode default) in a CUDA graph for each request in flight, replayed on a stream of its "
           "own between copies from and to pinned memory")
    mode = "default"

    def make_net(self, graph, params, dtype):
        return compiled(Plain(graph, params, self.device, dtype, self.layout == "nhwc"), self.mode)

    def details(self):
        return {**super().details(), "mode": self.mode}

    def close(self):
        super().close()
        torch._dynamo.reset()  # gives back what was compiled


class ReduceOverhead(CompiledGraphs):
    """Its CUDA graph has one memory for all calls, so that calls follow one another on one stream; a slot's copies are
    on two other streams, beside another's run. The graph copies its inputs once more, and its outputs are moved out of its
    memory, which the next call overwrites."""
    name = "torch.compile"
    how = ("torch.compile, mode reduce-overhead: calls one after the other on one stream, copies from and to pinned memory "
           "of other requests in flight on two more, meanwhile")
    mode = "reduce-overhead"

    def __init__(self, *what):
        self.computing, self.copying_in, self.copying_out = (torch.cuda.Stream() for _ in range(3))
        super().__init__(*what)

    def call(self, place):
        torch.compiler.cudagraph_mark_step_begin()  # earlier outputs may be overwritten
        return self.net(*place.inputs)

    def prepare(self, place):
        with torch.cuda.stream(self.computing), torch.no_grad():
            for _ in range(3):  # compiles, warms up, records the CUDA graph
                results = self.call(place)
            place.results = [r.clone() for r in results]
            place.host_results = [torch.empty_like(r, device="cpu", pin_memory=True) for r in place.results]
        place.copied, place.ran, place.fetched = (torch.cuda.Event() for _ in range(3))
        torch.cuda.synchronize()

    def enqueue(self, place, end):
        # Waiting for an event that was never recorded is no waiting.
        torch.cuda.set_stream(self.copying_in)
        place.ran.wait(self.copying_in)
        for given, host in zip(place.inputs, place.host_inputs):
            given.copy_(host, non_blocking=True)
        place.copied.record(self.copying_in)
        torch.cuda.set_stream(self.computing)
        place.copied.wait(self.computing)
        place.fetched.wait(self.computing)
        for kept, result in zip(place.results, self.call(place)):
            kept.copy_(result, non_blocking=True)
        place.ran.record(self.computing)
        torch.cuda.set_stream(self.copying_out)
        place.ran.wait(self.copying_out)
        for host, result in zip(place.host_results, place.results):
            host.copy_(result, non_blocking=True)
        place.fetched.record(self.copying_out)
        end.record(self.copying_out)
