"""What bench/interrupts.py interrupts: commands, when Ctrl-C is pressed, and the sizes that they have on a backend."""
import dataclasses
import json

import records


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is run on a backend: models with their options."""
    network: tuple           # of most cases: MODEL and options; measured before
    single: tuple            # the same at batch 1
    profiled: tuple          # nothing of it is known at first
    large: tuple
    huge: tuple
    gemm: tuple
    dtypes: tuple            # of the experiment
    into_reference_s: float  # from the beginning of the float64 reference, which takes longer, to the key


SIZES = {
    "cuda": Sizes(network=("models/googlenet.json", "--dtype", "f16", "--batch", "32"),
                  single=("models/googlenet.json", "--dtype", "f16", "--batch", "1"),
                  profiled=("models/inception_v3.json", "--dtype", "f16", "--batch", "48"),
                  large=("models/vgg16.json", "--dtype", "f32", "--batch", "64"),
                  huge=("models/vgg16.json", "--dtype", "f32", "--batch", "256", "--workspace-limit", "24G"),
                  gemm=("--dtype", "f32,f16", "--sizes", "256..8192"), dtypes=("f16", "tf32"),
                  into_reference_s=0.5),
    "cpu": Sizes(network=("models/squeezenet1_1.json", "--dtype", "f32", "--batch", "2"),
                 single=("models/squeezenet1_1.json", "--dtype", "f32", "--batch", "1"),
                 profiled=("models/squeezenet1_1.json", "--dtype", "f32", "--batch", "3"),
                 large=("models/googlenet.json", "--dtype", "f32", "--batch", "4"),
                 huge=("models/googlenet.json", "--dtype", "f32", "--batch", "8"),
                 gemm=("--dtype", "f32", "--sizes", "64..2048"), dtypes=("f32",), into_reference_s=0.05),
}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    args: tuple
    cache: str            # which profile database: KNOWN, or one that is empty before the first case with it
    after_s: float        # from the start, or from the stage's first line, to the key
    stage: str = ""       # of the line of progress; empty: none is waited for
    most_s: float = 15    # for the stage; the key is pressed after_s later even if it was not reached
    memory: bool = False  # whether the device's used memory is recorded
    only: str = ""        # the backend that has such a stage; empty: any


KNOWN = "known"  # has the network's measurements


def all_cases(sizes, folder):
    """In order: those of one database follow on each other's measurements."""
    run = ("run", *sizes.network, "--policy", "coselect", "--search-seconds")
    trace = ("trace", *sizes.network, "-o", f"{folder}/never.trace.json", "--policy")
    profile = ("profile", *sizes.profiled, "--resume")
    gemm = ("bench", "gemm", *sizes.gemm)
    experiment = ("experiment", f"{folder}/experiment.json", "-o", f"{folder}/experiment.jsonl")
    return (
        Case("profile", profile, "profile", 1.5),
        Case("profile again", profile, "profile", 4),
        Case("search", (*run, "20"), KNOWN, 1.5, "search"),
        Case("verify full", (*run, "0", "--verify", "full"), KNOWN, 0.15, "verification"),
        Case("memory heavy", ("run", *sizes.large), "large", 6, memory=True),
        Case("profile again", profile, "profile", 8),
        Case("run profiling", (*run, "20"), "run", 1, "profiling", 10),
        Case("experiment", experiment, KNOWN, 6),
        Case("trace", (*trace, "coselect", "--search-seconds", "20"), KNOWN, 1, "search"),
        Case("bench gemm", gemm, "gemm", 3),
        Case("memory heavy again", ("run", *sizes.large), "large", 12, memory=True),
        Case("starting", (*run, "20"), KNOWN, 0.4),
        Case("starting", (*run, "20"), KNOWN, 1.0),
        Case("co-runs", ("profile", *sizes.single, "--corun"), KNOWN, 1, "co-runs"),
        Case("counters", ("profile", *sizes.single, "--counters"), KNOWN, 1, "counters", 8, only="cuda"),
        Case("trace tracing", (*trace, "streams", "--samples", "1", "--runs", "1000"), KNOWN, 3),
        Case("run profiling again", (*run, "20"), "run", 3, "profiling", 10),
        Case("float64 reference", (*run, "0", "--verify", "full"), KNOWN, sizes.into_reference_s, "float64 reference", 20),
        Case("bench gemm again", gemm, "gemm", 5),
        Case("huge", ("run", *sizes.huge), "large", 9, memory=True),
    )


NAMES = [case.name for case in all_cases(SIZES["cpu"], "")]


def write_experiment(sizes, folder):
    """The specification that the case `experiment` runs."""
    model = sizes.single[0]
    (folder / "experiment.json").write_text(json.dumps({
        "schema": "convsched.experiment/1", "name": "interrupted", "models": [str(records.ROOT / model)],
        "dtypes": sizes.dtypes, "batches": [1], "policies": ["sequential", "coselect"], "partitions": ["none", None],
        "search_seconds": 5}), encoding="utf-8")
