#!/usr/bin/env python3
"""Exports every operator, and the models of models/, as ONNX; the onnx package checks them (types and shapes
too), and ONNX Runtime computes what libconvsched computes on the CPU.

    tools/onnx_export_check.py LIBCONVSCHED [--match TEXT]

Exit: 0 all are equal, 1 not, 77 the packages onnx, onnxruntime and numpy are not here.
"""
import argparse
import json
import pathlib
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"not here: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import convsched  # noqa: E402

BATCH = 2
TOLERANCE = 2e-5  # of the largest number: f32 sums in another order
X = [4, 7, 6]
PLANES = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
# Operator, attributes; inputs (default: x of four axes, v of two).
CASES = [
    ("Conv", {"out_channels": 6, "group": 2, "dilations": [1, 2], **PLANES}),
    ("Conv", {"out_channels": 3, "kernel_shape": [1, 1], "bias": False}),
    ("ConvTranspose", {"out_channels": 6, "kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 0, 0, 1],
                       "output_padding": [1, 2], "group": 2}),
    ("Gemm", {"out_features": 3}, ["v"]), ("Gemm", {"out_features": 3, "bias": False}, ["v"]),
    ("BatchNormalization", {"epsilon": 0.001}), ("BatchNormalization", {}, ["v"]),
    ("Relu", {}), ("LeakyRelu", {}), ("LeakyRelu", {"alpha": 0.3}), ("Clip", {}), ("Clip", {"min": -0.1}),
    ("Clip", {"max": 0.3}), ("Clip", {"min": -0.5, "max": 0.5}), ("Sigmoid", {}), ("Tanh", {}),
    ("Add", {}, ["x", "x"]), ("Add", {"operand": [4, 1, 1]}), ("Sub", {"operand": [1], "operand_first": True}),
    ("Mul", {"operand": [1, 4, 1, 1]}), ("Div", {"operand": [6]}), ("Max", {"operand": [6], "operand_first": True}),
    ("Min", {"operand": [1]}), ("Max", {}, ["x", "x"]), ("Pow", {"operand": [1]}), ("PRelu", {"operand": [4, 1, 1]}),
    ("Elu", {"alpha": 0.7}), ("Selu", {}), ("HardSigmoid", {"alpha": 1 / 6}), ("HardSwish", {}), ("Swish", {"alpha": 1.1}),
    ("Abs", {}), ("Neg", {}), ("Exp", {}), ("Softplus", {}), ("Erf", {}), ("Gelu", {}), ("Sqrt", {}, ["positive"]),
    ("MaxPool", {"dilations": [1, 2], **PLANES}), ("MaxPool", {"ceil_mode": True, "kernel_shape": [3, 3], "strides": [2, 2]}),
    ("AveragePool", {"count_include_pad": True, **PLANES}), ("AveragePool", PLANES),
    ("AveragePool", {"kernel_shape": [2, 2], "dilations": [2, 2]}),
    ("MaxPool", {"ceil_mode": True, "kernel_shape": [3, 3], "strides": [4, 4], "pads": [2, 2, 2, 2]}),
    ("GlobalAveragePool", {}), ("GlobalMaxPool", {}),
    ("ReduceMean", {"axes": [2, 3]}), ("ReduceSum", {"axes": [1], "keepdims": False}), ("ReduceMax", {"axes": [2, 3]}),
    ("ReduceMin", {"axes": [-1], "keepdims": False}), ("InstanceNormalization", {}), ("LRN", {"size": 3}),
    ("LRN", {"size": 5, "alpha": 0.5, "beta": 0.6, "bias": 2.0}), ("Softmax", {"axis": 1}), ("Concat", {"axis": 2}, ["x", "x"]),
    ("Flatten", {}), ("Pad", {"pads": [0, 0, 1, 2, 0, 1, 0, 3], "value": -0.7}), ("Identity", {}), ("Dropout", {}),
    ("Pad", {"pads": [0, 0, 2, 1, 0, 0, -1, 2], "mode": "reflect"}), ("Pad", {"pads": [0, 0, 0, 1, 0, 1, 0, 2], "mode": "edge"}),
    ("Reshape", {"shape": ["N", 2, 14, 6]}), ("Transpose", {"perm": [0, 2, 3, 1]}),
    ("Transpose", {"perm": [0, 2, 1, 3, 4], "input_shape": ["N", 2, 2, 7, 6], "output_shape": ["N", 4, 7, 6]}),
    ("Slice", {"starts": [1, -1], "ends": [3, -8], "axes": [1, 2], "steps": [1, -2]}),
    ("Resize", {"sizes": [14, 9]}), ("Resize", {"sizes": [14, 3], "scales": [2.0, 0.5], "mode": "linear",
                                                "coordinate_transformation_mode": "align_corners"}),
    ("Resize", {"sizes": [9, 9], "mode": "cubic", "coordinate_transformation_mode": "asymmetric"}),
    ("Resize", {"sizes": [3, 2], "mode": "linear", "antialias": True}),
    ("Resize", {"sizes": [3, 4], "mode": "cubic", "antialias": True, "exclude_outside": True, "cubic_coeff_a": -0.5}),
    ("Resize", {"sizes": [5, 4], "coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}),
]
MODELS = ("googlenet", "squeezenet1_1", "dcgan_generator")


def one_node(operator, attributes, inputs=("x",)):
    """convsched.graph/1; `positive` is Abs of x."""
    nodes = [{"name": "positive", "op": "Abs", "inputs": ["x"]}] if "positive" in inputs else []
    nodes.append({"name": "it", "op": operator, "inputs": list(inputs), "attrs": attributes})
    shapes = {"v": ["N", 5]} if "v" in inputs else {"x": ["N", *X]}
    return {"schema": "convsched.graph/1", "name": "one", "nodes": nodes, "outputs": ["it"],
            "inputs": [{"name": name, "shape": shape} for name, shape in shapes.items()]}


def cases(folder):
    """(name, path of the graph)"""
    for index, case in enumerate(CASES):
        path = folder / f"{index}-{case[0]}.json"
        path.write_text(json.dumps(one_node(*case)))
        yield path.stem, path
    for name in MODELS:
        yield name, ROOT / "models" / f"{name}.json"


def check(library, device, path, folder):
    """(opset, largest difference over the largest number)."""
    file = str(folder / "model.onnx")
    with library.load_graph(path) as graph:
        graph.export_onnx(file, seed=3)
        onnx.checker.check_model(file, full_check=True)
        rng = np.random.default_rng(1)
        inputs = [rng.standard_normal(shape, np.float32) for shape in graph.input_shapes(BATCH)]
        found = [np.zeros(shape, np.float32) for shape in graph.output_shapes(BATCH)]
        with convsched.Session(device, graph, batch=BATCH, seed=3, cache_dir=str(folder / "cache")) as session:
            session.run(inputs, found)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    other = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
    wanted = other.run(None, {spec.name: x for spec, x in zip(other.get_inputs(), inputs, strict=True)})
    errors = []
    for f, w in zip(found, wanted, strict=True):
        if f.shape != w.shape:
            raise ValueError(f"shape {f.shape} here, {w.shape} there")
        errors.append(float(np.abs(f - w).max() / np.abs(w).max()))
    return onnx.load(file, load_external_data=False).opset_import[0].version, max(errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--match", default="", help="only cases whose name holds this")
    args = parser.parse_args()
    library = convsched.Library(args.library)
    wrong = checked = 0
    with library.open_device("cpu") as device, tempfile.TemporaryDirectory() as folder:
        for name, path in cases(pathlib.Path(folder)):
            if args.match not in name:
                continue
            checked += 1
            try:
                opset, error = check(library, device, path, pathlib.Path(folder))
                good, told = error < TOLERANCE, f"opset {opset}, difference {error:.1e}"
            except Exception as problem:  # of any of the three
                good, told = False, f"{type(problem).__name__}: {str(problem).splitlines()[0][:200]}"
            wrong += not good
            print(f"{name}: {'ok' if good else 'FAILED'}: {told}")
    print(f"{checked} checked, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
