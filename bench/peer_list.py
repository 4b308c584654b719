"""The other systems by the names that `bench/peers.py --peers` takes, and how each is made. A system is
imported when it is asked for: what is not installed is told and left out."""
import contextlib
import dataclasses
import importlib
import signal


@dataclasses.dataclass
class Peer:
    module: str
    classes: dict  # of contenders, and their names
    layouts: bool  # whether there is one of each layout
    others: tuple = ()  # names of the other arguments that it takes, in their order


GPU = {
    "eager": Peer("torch_peers", {"Eager": "torch.eager"}, True),
    "cudagraph": Peer("torch_peers", {"CudaGraph": "torch.cudagraph"}, True),
    "cudagraph_streams": Peer("torch_peers", {"CudaGraphStreams": "torch.cudagraph_streams"}, True),
    "compile": Peer("torch_compile", {"Compile": "torch.compile", "CompileStatic": "torch.compile_static"}, True),
    "jax": Peer("jax_peers", {"Jax": "jax.jit"}, True),
}
CPU = {
    "onnxruntime": Peer("contenders", {"OnnxRuntime": "onnxruntime.cpu"}, False, ("onnx_file", "threads")),
    "eager": Peer("torch_peers", {"CpuEager": "torch.cpu"}, True, ("threads",)),
    "compile": Peer("torch_compile", {"CpuCompile": "torch.cpu_compile"}, True, ("threads",)),
    "jax": Peer("jax_peers", {"JaxCpu": "jax.cpu"}, True),
}
LAYOUTS = ("nchw", "nhwc")


def contender_names(peers):
    return [name for peer in peers.values() for name in peer.classes.values()]


def left_out(name, layout, error, say):
    """Why there is no figure of a contender: a member of a record's `left_out`."""
    text = (str(error).strip().splitlines() or [""])[0][:300]
    entry = {"name": name, "layout": layout, "reason": f"{type(error).__name__}: {text}"}
    say(f"{name} {entry['layout'] or ''}: left out: {entry['reason']}")
    return entry


@contextlib.contextmanager
def limited(seconds):
    """Raises TimeoutError in what runs longer; 0: no limit. Only Python code is interrupted: torch's compiler is
    that, XLA's is not."""
    def stop(*_):
        raise TimeoutError(f"not prepared in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def make(peers, names, layouts, common, others, seconds, say):
    """(contenders, left out): of each peer and layout a contender, made with the arguments `common`, then
    those of `others` (by name) that it takes, and the layout where it has any; one that cannot be made (in so many seconds) is left out with its reason, and the
    rest go on."""
    made, missing = [], []
    for name in names:
        peer = peers[name]
        for which, contender in peer.classes.items():
            for layout in layouts if peer.layouts else [None]:
                try:
                    with limited(seconds):
                        made.append(getattr(importlib.import_module(peer.module), which)(
                            *common, *(others[argument] for argument in peer.others), *([layout] if layout else ())))
                except Exception as error:  # whatever another system's compiler may raise
                    missing.append(left_out(contender, layout, error, say))
    return made, missing
