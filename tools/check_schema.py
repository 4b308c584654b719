#!/usr/bin/env python3
"""Checks every model against the JSON Schema of convsched.graph/1, and that the schema refuses
what the format forbids. Exit: 0 ok, 1 a mismatch, 77 no jsonschema package."""
import copy
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    try:
        import jsonschema
    except ImportError:
        print("the Python package jsonschema is not here (Debian: python3-jsonschema)")
        return 1 if os.environ.get("CS_CHECKS_REQUIRED") else 77
    schema = json.loads((ROOT / "docs/schema/graph.schema.json").read_text())
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    validator = cls(schema)
    models = [path for path in sorted((ROOT / "models").glob("*.json"))
              if path.name != "errors.json"]  # convsched.errors/1
    models += sorted((ROOT / "tests/data/goldens").glob("*/graph.json"))
    wrong = 0 if models else 1
    for path in models:
        errors = list(validator.iter_errors(json.loads(path.read_text())))
        for error in errors[:3]:
            place = "/".join(str(p) for p in error.absolute_path)
            print(f"{path.relative_to(ROOT)}: /{place}: {error.message[:200]}")
        wrong += bool(errors)
    graph = {
        "schema": "convsched.graph/1", "name": "t",
        "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "f32"}],
        "nodes": [{"name": "a", "op": "Relu", "inputs": ["x"]}], "outputs": ["a"]}
    if list(validator.iter_errors(graph)):
        print("the schema refuses a valid graph")
        wrong += 1
    for what, change in {
            "an unknown key": lambda g: g.update(extra=1),
            "an unknown operator": lambda g: g["nodes"][0].update(op="Reloo"),
            "an unknown key of a node": lambda g: g["nodes"][0].update(attributes={}),
            "a node without a name": lambda g: g["nodes"][0].pop("name"),
            "another schema": lambda g: g.update(schema="convsched.graph/2"),
            "no outputs": lambda g: g.pop("outputs")}.items():
        changed = copy.deepcopy(graph)
        change(changed)
        if not list(validator.iter_errors(changed)):
            print(f"the schema accepts {what}")
            wrong += 1
    print(f"{len(models)} models checked, {wrong} mismatches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
