#!/usr/bin/env python3
"""Runs ONNX's backend tests through libconvsched: folders of model.onnx and
test_data_set_*/{input,output}_*.pb (the node tests), and light_*.onnx with light_*_output_*.pb (whole
networks whose weights are constants).

    tools/onnx_backend_tests.py LIBCONVSCHED [--data FOLDER | --part node|light] [--match TEXT]
        [--page FILE | --write FILE] [--device cuda:0] [--jobs N]

Needs the packages onnx and numpy; without --data it takes the node tests and light models of the onnx
package. A node test gives weights as inputs. Where a model cannot be imported with every input computed, the
inputs behind the first become initializers, with the values of the test. What the importer then refuses is
excluded, with its reason; anything else that goes wrong, and a wrong number, is a failure. A CPU computes all
in f32, a GPU tests of float16 and bfloat16 in these. --write makes a
page of it (docs/onnx-node-tests.md, by tools/onnx_node_tests.sh); --page says where FILE is another page.
Exit: 0 none failed, 1 some failed, none passed or another page, 77 a package or its tests are not here.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import difflib
import multiprocessing
import os
import pathlib
import re
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as error:
    print(f"not here: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import convsched  # noqa: E402

BAD_INPUT = 3
# As in ONNX's own runner, but for the absolute part, which is that of f32 sums.
RELATIVE = {onnx.TensorProto.FLOAT16: 1e-2, onnx.TensorProto.BFLOAT16: 2e-2}
ABSOLUTE = {onnx.TensorProto.FLOAT16: 1e-3, onnx.TensorProto.BFLOAT16: 1e-2}


def tensors(folder, side):
    paths = sorted(folder.glob(f"{side}_*.pb"), key=lambda p: int(re.search(r"(\d+)\.pb$", p.name)[1]))
    result = []
    for path in paths:
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        result.append(tensor)
    return result


def kinds_of(values):
    return [value.type.tensor_type.elem_type for value in values]


def array_of(tensor, kind):
    """Of the type that the model says. Versions of onnx differ in what a bfloat16 becomes (and write
    it as uint16); here it is f32."""
    if kind != onnx.TensorProto.BFLOAT16:
        return numpy_helper.to_array(tensor)
    bits = np.frombuffer(tensor.raw_data, "<u2") if tensor.raw_data else np.array(tensor.int32_data)
    return (bits.astype(np.uint32) << 16).view(np.float32).reshape(tuple(tensor.dims))


def operators(model):
    names = list(dict.fromkeys(node.op_type for node in model.graph.node))
    return names[0] if len(names) == 1 else "+".join(names[:3])


def with_initializers(model, inputs, first):
    """The model with its inputs from `first` on as initializers."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for info, tensor in list(zip(model.graph.input, inputs))[first:]:
        initializer = model.graph.initializer.add()
        initializer.CopyFrom(tensor)
        initializer.name = info.name
        model.graph.input.remove(info)
    return model


def load(library, model, inputs, folder):
    """(graph, how many inputs it computes with): every input, else only the first."""
    path = str(pathlib.Path(folder) / f"{os.getpid()}.onnx")
    for n in dict.fromkeys((len(inputs), 1)):
        onnx.save(with_initializers(model, inputs, n), path)
        try:
            return library.load_graph(path), n
        except convsched.Error as error:
            last = error
    raise last


def reason_of(error):
    lines = str(error).splitlines()
    text = lines[1].strip() if len(lines) > 1 else lines[0]
    text = re.sub(r'^node ".*?" \((.*?)\): operator is', r"\1 is", text)
    text = re.sub(r'^node ".*?" \(.*?\): ', "", text)
    return re.sub(r'"[^"]*"', '"…"', re.sub(r"^.*\d\.onnx: ", "", text))


def compare(graph, batch, arrays, case):
    """None, or what is wrong."""
    for shape, array, expected, kind in zip(graph.output_shapes(batch), arrays, case.wanted, case.kinds):
        if tuple(shape) != expected.shape:
            return f"shape {shape}, wanted {list(expected.shape)}"
        close = np.isclose(array.reshape(expected.shape), expected.astype(np.float32),
                           rtol=RELATIVE.get(kind, 1e-3), atol=ABSOLUTE.get(kind, case.absolute), equal_nan=True)
        if not close.all():
            return f"{(~close).sum()} of {close.size} numbers are wrong"
    return None


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: list  # TensorProtos
    wanted: list  # arrays
    kinds: list  # the types of the wanted
    absolute: float  # part of the tolerance of f32


def fits(info, tensor):
    """Whether a tensor has the shape that the model says of its input."""
    told = info.type.tensor_type.shape.dim
    return len(told) == len(tensor.dims) and all(
        not d.HasField("dim_value") or d.dim_value == n for d, n in zip(told, tensor.dims))


def node_case(folder):
    """A folder's test; its first data set."""
    model = onnx.load(folder / "model.onnx")
    first = min(folder.glob("test_data_set_*"))
    kinds = kinds_of(model.graph.output)
    try:
        inputs = tensors(first, "input")
        wanted = [array_of(t, kind) for t, kind in zip(tensors(first, "output"), kinds)]
    except Exception as error:  # sequences, optionals: no tensors
        raise ValueError(f"no tensors ({type(error).__name__})") from error
    if not all(map(fits, model.graph.input, inputs)):
        raise ValueError("an input of the test has another shape than its model says")
    return Case(folder.name, model, inputs, wanted, kinds, 1e-5)


def light_case(path):
    """ONNX's runner gives such a model's input the numbers 0 to 1, in order, and the expected output is beside it."""
    model = onnx.load(path)
    constants = {initializer.name for initializer in model.graph.initializer}
    (info,) = (i for i in model.graph.input if i.name not in constants)
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    given = (np.arange(count).reshape(shape) / count).astype(np.float32)
    wanted = onnx.TensorProto.FromString((path.parent / f"{path.stem}_output_0.pb").read_bytes())
    return Case(path.stem, model, [numpy_helper.from_array(given, info.name)], [numpy_helper.to_array(wanted)],
                kinds_of(model.graph.output), 1e-7)


def precision_of(case, device):
    """That of the outputs, where the device has it."""
    narrow = {onnx.TensorProto.FLOAT16: "f16", onnx.TensorProto.BFLOAT16: "bf16"}
    return "f32" if device.info()["backend"] == "cpu" else narrow.get(case.kinds[0], "f32")


def run_case(library, device, case, folder):
    """("passed" | "failed" | "excluded", reason)"""
    try:
        graph, n = load(library, case.model, case.inputs, folder)
    except convsched.Error as error:
        return ("excluded" if error.exit_code == BAD_INPUT else "failed"), reason_of(error)
    with graph:
        given = [np.array(array_of(t, kind), dtype=np.float32)
                 for t, kind in zip(case.inputs[:n], kinds_of(case.model.graph.input))]
        batch = given[0].shape[0]
        outputs = [np.zeros(shape, np.float32) for shape in graph.output_shapes(batch)]
        try:
            with convsched.Session(device, graph, batch=batch, precision=precision_of(case, device),
                                   cache_dir=folder) as session:
                session.run(given, outputs)
        except convsched.Error as error:
            return "failed", str(error)
        wrong = compare(graph, batch, outputs, case)
        return ("failed", wrong) if wrong else ("passed", "")


def run_path(library, device, path, folder):
    """(name, operator, outcome, reason) of one test; operator: "" of a light model. Measurements are kept in the folder."""
    light = path.suffix == ".onnx"
    file = path if light else path / "model.onnx"
    operator = "" if light else operators(onnx.load(file, load_external_data=False))
    try:
        case = light_case(path) if light else node_case(path)
    except ValueError as error:
        outcome, reason = "excluded", str(error)
    else:
        outcome, reason = run_case(library, device, case, folder)
    if outcome == "failed":
        print(f"failed: {path.name}: {reason}", file=sys.stderr)
    return path.stem, operator, outcome, reason


def tests_in(folder, match):
    return [path for path in sorted(folder.iterdir())
            if match in path.name and (path.suffix == ".onnx" or (path / "model.onnx").exists())]


def worker(path):
    return run_path(worker.library, worker.device, path, worker.folder)


def begin_worker(library, device, folder):
    """In each process: what `worker` takes; it lives as long as the process."""
    worker.folder = folder
    worker.library = convsched.Library(library)
    worker.device = worker.library.open_device(device)


def run_all(args, paths):
    """The results of run_path, in the order of the paths."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(
            args.jobs, multiprocessing.get_context("spawn"), begin_worker, (args.library, args.device, folder)) as pool:
        return list(pool.map(worker, paths))


def told(reasons):
    return "; ".join(f"{reason.replace('|', '/')} ({n})" for reason, n in
                     sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def node_tables(results):
    """Markdown: operators with a test that passed or failed, then the others; each exclusion's reason."""
    rows = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(collections.Counter)
    for _, operator, outcome, reason in results:
        rows[operator][outcome] += 1
        if outcome == "excluded":
            reasons[operator][reason] += 1
    total = collections.Counter(outcome for _, _, outcome, _ in results)
    lines = ["| operator | passed | failed | excluded | why excluded |", "|---|---|---|---|---|"]
    imported = [operator for operator in sorted(rows) if rows[operator]["passed"] or rows[operator]["failed"]]
    for operator in imported:
        count = rows[operator]
        lines.append(f"| {operator} | {count['passed']} | {count['failed']} | {count['excluded']} "
                     f"| {told(reasons[operator])} |")
    lines.append(f"| all, with those below | {total['passed']} | {total['failed']} | {total['excluded']} | |")
    others = [operator for operator in sorted(rows) if operator not in imported]
    lines += ["", f"Operators none of whose tests can be imported ({len(others)}):", "",
              "| operator | tests | why |", "|---|---|---|"]
    lines += [f"| {operator} | {rows[operator]['excluded']} | {told(reasons[operator])} |" for operator in others]
    return "\n".join(lines + excluded_by_name(results, imported)) + "\n"


def excluded_by_name(results, operators):
    """Which tests of operators that are imported are excluded, and why each."""
    names = collections.defaultdict(list)
    for name, operator, outcome, reason in results:
        if outcome == "excluded" and operator in operators:
            names[operator, reason].append(name.removeprefix("test_"))
    return ["", "Which tests of operators that have passing ones are excluded:", "", "| operator | why | tests |", "|---|---|---|",
            *(f"| {operator} | {reason.replace('|', '/')} | {', '.join(sorted(listed))} |"
              for (operator, reason), listed in sorted(names.items()))]


def light_table(results):
    lines = ["| model | outcome | why |", "|---|---|---|"]
    lines += [f"| {name.removeprefix('light_')} | {outcome} | {reason.replace('|', '/')} |"
              for name, _, outcome, reason in results]
    return "\n".join(lines) + "\n"


HEAD = """# ONNX's own tests

Made by `tools/onnx_node_tests.sh --write`; do not edit. The backend tests of the onnx package {version}, imported and run
by the {backend} backend, against the outputs that come with them. A test of several operators is listed under the first
three. What the importer refuses is excluded, with its reason and how many tests have it; [onnx.md](onnx.md) tells
how the tests are run.
"""


def sections(results):
    """Markdown by heading, of what was run."""
    made = {}
    nodes, models = [r for r in results if r[1]], [r for r in results if not r[1]]
    if nodes:
        made["## Node tests"] = "\n" + node_tables(nodes)
    if models:
        made["## Light models"] = ("\nWhole networks of ONNX's model zoo, their weights made of constants.\n\n" +
                                   light_table(models))
    return made


def head(device):
    return HEAD.format(version=onnx.__version__, backend=device.info()["backend"].upper())


def page(results, device):
    return head(device) + "".join(f"\n{heading}\n{text}" for heading, text in sections(results).items())


def check_page(results, device, path):
    """Whether the file has these sections; else says what differs."""
    found = pathlib.Path(path).read_text() if pathlib.Path(path).exists() else ""
    same = found.startswith(head(device))
    for heading, text in sections(results).items():
        there = found.partition(f"\n{heading}\n")[2].partition("\n## ")[0].strip().splitlines()
        lines = list(difflib.unified_diff(there, text.strip().splitlines(), str(path), "these tests", lineterm=""))
        print("\n".join(lines), file=sys.stderr)
        same = same and not lines
    if not same:
        print(f"{path} is another page: tools/onnx_node_tests.sh --write", file=sys.stderr)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--data", type=pathlib.Path, action="append", help="a folder of tests, in place of the package's")
    parser.add_argument("--match", default="", help="only cases whose name holds this")
    parser.add_argument("--page", help="fail where this page has another table")
    parser.add_argument("--write", help="write the page here")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time, each in a process of its own (default 1)")
    parser.add_argument("--part", choices=("node", "light"), help="only these of the package's")
    args = parser.parse_args()
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    folders = args.data or [data / part for part in ([args.part] if args.part else ["node", "light"])]
    for folder in folders:
        if not folder.is_dir():
            print(f"not here: {folder} (onnx 1.17.0 has it)")
            return 77
    results = run_all(args, [path for folder in folders for path in tests_in(folder, args.match)])
    with convsched.Library(args.library).open_device(args.device) as device:
        print(page(results, device))
        if args.write:
            pathlib.Path(args.write).write_text(page(results, device))
        same = not args.page or check_page(results, device, args.page)
    outcomes = {outcome for _, _, outcome, _ in results}
    return 0 if same and "failed" not in outcomes and "passed" in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
