"""The other systems by the names that `bench/peers.py --peers` takes, and how each is made. A system is
imported when it is asked for: what is not installed is told and left out."""
import dataclasses
import importlib


@dataclasses.dataclass
class Peer:
    module: str
    classes: tuple  # contenders' classes
    layouts: bool  # whether there is one of each layout


GPU = {
    "eager": Peer("torch_peers", ("Eager",), True),
    "cudagraph": Peer("torch_peers", ("CudaGraph",), True),
    "cudagraph_streams": Peer("torch_peers", ("CudaGraphStreams",), True),
    "compile": Peer("torch_compile", ("Compile", "CompileStatic"), True),
    "jax": Peer("jax_peers", ("Jax",), True),
}
CPU = {
    "onnxruntime": Peer("contenders", ("OnnxRuntime",), False),
    "eager": Peer("torch_peers", ("CpuEager",), False),
    "compile": Peer("torch_compile", ("CpuCompile",), False),
    "jax": Peer("jax_peers", ("JaxCpu",), True),
}
LAYOUTS = ("nchw", "nhwc")


def make(peers, names, layouts, common, others, say):
    """(contenders, left out): of each peer and layout a contender, made with the arguments `common` and then
    `layout` or `others`; one that cannot be made is left out with its reason, and the rest go on."""
    made, left_out = [], []
    for name in names:
        peer = peers[name]
        for which in peer.classes:
            for more in [(layout,) for layout in layouts] if peer.layouts else [others]:
                try:
                    made.append(getattr(importlib.import_module(peer.module), which)(*common, *more))
                except Exception as error:  # whatever another system's compiler may raise
                    reason = (str(error).strip().splitlines() or [""])[0][:300]
                    left_out.append({"name": name, "class": which, "layout": more[0] if peer.layouts else None,
                                     "reason": f"{type(error).__name__}: {reason}"})
                    say(f"{name} ({which} {left_out[-1]['layout'] or ''}): left out: {left_out[-1]['reason']}")
    return made, left_out
