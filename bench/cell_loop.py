"""Configuration after configuration (MODEL/DTYPE/BATCH): each recorded when it has ended, none begun that would not end
in time, what fails told without losing the others."""
import pathlib
import time
import traceback

import cell_table
import records


def left_to_do(listed, done, most, schema=records.RUN):
    """Configurations in order, without repetitions and those that the files `done` have records of."""
    recorded = {cell_table.cell_of(record) for path in done for record in records.of_schema(path, schema)}
    left = [cell for cell in dict.fromkeys(listed) if (pathlib.Path(cell[0]).stem, *cell[1:]) not in recorded]
    return left[:most]


def run(cells, measure, out, time_limit, note, say_result):
    """Appends measure(*cell) of each to the file `out`; true: all were measured, and right. No configuration is begun
    after time_limit (seconds; 0: none), nor one that would not end by then if it took as long as the longest before."""
    start, longest, good = time.monotonic(), 0, True
    for cell in cells:
        begun = time.monotonic()
        if time_limit and begun - start + longest > time_limit:
            note(f"time limit: {cell_table.cell_name(cell)} is left out")
            continue
        try:
            record = measure(*cell)
        except Exception:  # of any system; what other configurations give is not to be lost
            traceback.print_exc()
            note(f"{cell_table.cell_name(cell)}: failed")
            good = False
            continue
        records.append(out, record)
        good = good and record["verification"]["passed"]
        longest = max(longest, time.monotonic() - begun)
        say_result(cell, record, time.monotonic() - begun)
    return good
