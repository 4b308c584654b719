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


def left_out(name, what, error, say):
    """Why there is no figure of a contender: a member of a record's `left_out`."""
    text = (str(error).strip().splitlines() or [""])[0][:300]
    entry = {"name": name, "layout": getattr(what, "layout", None), "reason": f"{type(error).__name__}: {text}"}
    say(f"{name} {entry['layout'] or ''}: left out: {entry['reason']}")
    return entry


@dataclasses.dataclass
class Unmade:
    layout: str | None


def make(peers, names, layouts, common, others, say):
    """(contenders, left out): of each peer and layout a contender, made with the arguments `common` and then
    the layout or `others`; one that cannot be made is left out with its reason, and the rest go on."""
    made, missing = [], []
    for name in names:
        peer = peers[name]
        for which in peer.classes:
            for layout in layouts if peer.layouts else [None]:
                try:
                    made.append(getattr(importlib.import_module(peer.module), which)(
                        *common, *([layout] if layout else others)))
                except Exception as error:  # whatever another system's compiler may raise
                    missing.append(left_out(f"{name} ({which})", Unmade(layout), error, say))
    return made, missing
