#!/usr/bin/env python3
"""Writes the errors of the SM model over the recorded co-runs into docs/sm-model.md.

    tools/make_sm_model_errors.py BUILD_FOLDER
Exit: 0 ok, 1 the test failed or the document has no place for them, 2 usage.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- errors -->\n", "<!-- end of errors -->\n"


def markdown(output):
    """The tables and sentences among what the test prints, tables set apart by empty lines."""
    kept, was_table = [], False
    for line in output.splitlines():
        is_table = line.startswith("|")
        if not is_table and not line.startswith(("overlap:", "limiter:")):
            continue
        if is_table != was_table:
            kept.append("")
        kept.append(line if is_table else line + ".")
        was_table = is_table
    return "\n".join(kept) + "\n\n"


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    test = pathlib.Path(sys.argv[1]) / "tests" / "test_scheduler_sm_model_recorded"
    run = subprocess.run([str(test)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        print(f"{test}: failed\n{run.stdout}{run.stderr}", file=sys.stderr)
        return 1
    path = ROOT / "docs" / "sm-model.md"
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        print(f"{path}: no lines {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 1
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    path.write_text(before + BEGIN + markdown(run.stdout) + END + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
