#!/usr/bin/env python3
"""Runs ONNX's backend tests (folders of model.onnx and test_data_set_*/{input,output}_*.pb) through
libconvsched on the CPU and prints a table by operator: passed, failed, excluded and why.

    tools/onnx_backend_tests.py LIBCONVSCHED [--data FOLDER] [--match TEXT] [--out FILE]

Needs the packages onnx and numpy; without --data it takes the node tests of the onnx package. A node
test gives weights as inputs. Where a model cannot be imported with every input computed, the inputs
behind the first become initializers, with the values of the test. What the importer then refuses is
excluded, with its reason; anything else that goes wrong, and a wrong number, is a failure.
Exit: 0 none failed, 1 some failed or none passed, 77 a package or its tests are not here.
"""
import argparse
import collections
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
    path = str(pathlib.Path(folder) / "model.onnx")
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
    text = re.sub(r'^node ".*?" \(.*?\): ', "", text)
    return re.sub(r'"[^"]*"', '"…"', re.sub(r"^.*model\.onnx: ", "", text))


def compare(graph, batch, arrays, wanted, kinds):
    """None, or what is wrong. kinds: the types of the wanted."""
    for shape, array, expected, kind in zip(graph.output_shapes(batch), arrays, wanted, kinds):
        if tuple(shape) != expected.shape:
            return f"shape {shape}, wanted {list(expected.shape)}"
        close = np.isclose(array.reshape(expected.shape), expected.astype(np.float32),
                           rtol=RELATIVE.get(kind, 1e-3), atol=ABSOLUTE.get(kind, 1e-5), equal_nan=True)
        if not close.all():
            return f"{(~close).sum()} of {close.size} numbers are wrong"
    return None


def run_case(library, device, case, folder):
    """("passed" | "failed" | "excluded", reason)"""
    model = onnx.load(case / "model.onnx")
    sets = sorted(case.glob("test_data_set_*"))
    try:
        inputs = tensors(sets[0], "input")
        kinds = kinds_of(model.graph.output)
        wanted = [array_of(t, kind) for t, kind in zip(tensors(sets[0], "output"), kinds)]
    except Exception as error:  # sequences, optionals: no tensors
        return "excluded", f"no tensors ({type(error).__name__})"
    try:
        graph, n = load(library, model, inputs, folder)
    except convsched.Error as error:
        return ("excluded" if error.exit_code == BAD_INPUT else "failed"), reason_of(error)
    with graph:
        given = [np.array(array_of(t, kind), dtype=np.float32)
                 for t, kind in zip(inputs[:n], kinds_of(model.graph.input))]
        batch = given[0].shape[0]
        outputs = [np.zeros(shape, np.float32) for shape in graph.output_shapes(batch)]
        try:
            with convsched.Session(device, graph, batch=batch, cache_dir=folder) as session:
                session.run(given, outputs)
        except convsched.Error as error:
            return "failed", str(error)
        wrong = compare(graph, batch, outputs, wanted[:len(outputs)], kinds)
        return ("failed", wrong) if wrong else ("passed", "")


def table(results):
    """Markdown: operators with a test that passed or failed, then what was excluded."""
    rows = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(collections.Counter)
    for _, operator, outcome, reason in results:
        rows[operator][outcome] += 1
        if outcome == "excluded":
            reasons[operator][reason] += 1
    total = collections.Counter(outcome for _, _, outcome, _ in results)
    lines = ["| operator | passed | failed | excluded | why excluded |", "|---|---|---|---|---|"]
    unsupported = []
    for operator in sorted(rows):
        count = rows[operator]
        if not count["passed"] and not count["failed"]:
            unsupported.append(operator)
            continue
        why = "; ".join(f"{reason.replace('|', '/')} ({n})" for reason, n in reasons[operator].most_common())
        lines.append(f"| {operator} | {count['passed']} | {count['failed']} | {count['excluded']} | {why} |")
    lines.append(f"| all | {total['passed']} | {total['failed']} | {total['excluded']} | |")
    lines += ["", f"Operators none of whose tests can be imported ({len(unsupported)}): "
              + ", ".join(unsupported) + "."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--data", default=pathlib.Path(onnx.__file__).parent / "backend/test/data/node")
    parser.add_argument("--match", default="", help="only cases whose name holds this")
    parser.add_argument("--out", help="write the table here")
    args = parser.parse_args()
    if not pathlib.Path(args.data).is_dir():
        print(f"not here: {args.data} (onnx 1.17.0 has it)")
        return 77
    library = convsched.Library(args.library)
    results = []
    with library.open_device("cpu") as device, tempfile.TemporaryDirectory() as folder:
        for case in sorted(pathlib.Path(args.data).iterdir()):
            if not (case / "model.onnx").exists() or args.match not in case.name:
                continue
            operator = operators(onnx.load(case / "model.onnx", load_external_data=False))
            outcome, reason = run_case(library, device, case, folder)
            results.append((case.name, operator, outcome, reason))
            if outcome == "failed":
                print(f"failed: {case.name}: {reason}", file=sys.stderr)
    text = table(results)
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text)
    outcomes = {outcome for _, _, outcome, _ in results}
    return 1 if "failed" in outcomes or "passed" not in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
