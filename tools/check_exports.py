#!/usr/bin/env python3
"""Checks a built libconvsched.so: its defined dynamic symbols are exactly the functions that
convsched.h declares, it has a SONAME, and neither it nor the command links libcuda.

    tools/check_exports.py LIBRARY [COMMAND]
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def declared():
    text = (ROOT / "include/convsched/convsched.h").read_text()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return set(re.findall(r"^CS_API\b[^;(]*?\b(\w+)\s*\(", text, flags=re.M))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library = sys.argv[1]
    wrong = []
    exported = {line.split()[-1].split("@")[0]
                for line in output("nm", "-D", "--defined-only", library).splitlines()}
    wanted = declared()
    if len(wanted) < 20:
        wrong.append(f"only {len(wanted)} declarations found in convsched.h")
    for name in sorted(exported - wanted):
        wrong.append(f"{name} is exported but not declared in convsched.h")
    for name in sorted(wanted - exported):
        wrong.append(f"{name} is declared in convsched.h but not exported")
    dynamic = output("readelf", "-d", library)
    if not re.search(r"SONAME.*\[libconvsched\.so\.\d+\]", dynamic):
        wrong.append("the library has no SONAME libconvsched.so.N")
    for path in sys.argv[1:]:
        if "libcuda.so" in output("readelf", "-d", path):
            wrong.append(f"{path} links libcuda.so: it would not start without a driver")
    for line in wrong:
        print(line)
    print(f"{len(wanted)} public functions, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
