"""PyTorch's ways to have requests in flight by the names that `bench/throughput.py --peers` takes."""
from peer_list import Peer

GPU = {
    "compile_cudagraph": Peer("compile_in_flight", {"CompiledGraphs": "torch.compile_cudagraph"}, True),
    "cudagraph": Peer("torch_in_flight", {"Graphs": "torch.cudagraph"}, True),
    "cudagraph_streams": Peer("torch_in_flight", {"GraphsOfStreams": "torch.cudagraph_streams"}, True),
    "eager": Peer("torch_in_flight", {"Streams": "torch.eager"}, True),
    "compile": Peer("compile_in_flight", {"ReduceOverhead": "torch.compile"}, True),
}
CPU = {"threads": Peer("torch_in_flight", {"Threads": "torch.cpu_threads"}, False, ("threads",))}
