#!/usr/bin/env python3
"""Kernels that multiply by wgmma must not be compiled to wait for each product, or to spill: the assembler does the first where it
finds no registers for products under way at once, and says so to -v alone, and small changes of the code around make it do so.

    tools/check_wgmma.py BUILD

BUILD: a build folder with compile_commands.json. Exit code 77 where nothing is compiled for sm_90a.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

LOSS = re.compile(r"\(C75\d\d\) Potential Performance Loss: (.*) in the function '(.*)'")
FUNCTION = re.compile(r"Compiling entry function '(.*)' for")
SPILL = re.compile(r"(\d+) bytes spill stores")
INCLUDE = re.compile(r'^#include "(backend/cuda/[^"]*)"', re.MULTILINE)


def includes(file, source):
    """Whether a file includes backend/cuda/wgmma.cuh, directly or not."""
    found = INCLUDE.findall(file.read_text(encoding="utf-8"))
    return any(name.endswith("/wgmma.cuh") or includes(source / name, source) for name in found if name.endswith(".cuh"))


def compile_for_hopper(entry):
    """What ptxas tells of it."""
    arguments = [argument for argument in shlex.split(entry["command"]) if not argument.endswith("ccache")]
    kept, skip = [], False
    for argument in arguments:
        if skip or argument.startswith("--generate-code") or argument in ("-MD", "-c"):
            skip = False
        elif argument in ("-o", "-MT", "-MF"):
            skip = True
        else:
            kept.append(argument)
    result = subprocess.run([*kept, "-arch=sm_90a", "-cubin", "-o", "/dev/null", "-Xptxas", "-v"], cwd=entry["directory"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{entry['file']}: {result.stdout}")
    return result.stdout


def faults_of(told):
    """(function, fault) of each."""
    function = "?"
    for line in told.splitlines():
        name, loss, spill = FUNCTION.search(line), LOSS.search(line), SPILL.search(line)
        function = name[1] if name else function
        if loss:
            yield loss[2], loss[1]
        if spill and int(spill[1]) > 0:
            yield function, f"{spill[1]} bytes spilled"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = pathlib.Path(__file__).resolve().parent.parent / "src"
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text(encoding="utf-8"))
    wanted = [entry for entry in entries if entry["file"].endswith(".cu") and "compute_90a" in entry["command"] and
              pathlib.Path(entry["file"]).is_relative_to(source) and includes(pathlib.Path(entry["file"]), source)]
    if not wanted:
        print("check_wgmma: nothing here is compiled for sm_90a")
        sys.exit(77)
    failed = False
    for entry in wanted:
        told = compile_for_hopper(entry)
        kernels = len(FUNCTION.findall(told))
        faults = list(faults_of(told))
        print(f"{pathlib.Path(entry['file']).name}: {kernels} kernels, {len(faults)} faults")
        for function, fault in faults:
            print(f"  {function}: {fault}")
        failed = failed or bool(faults) or kernels == 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
