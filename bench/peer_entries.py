"""Entries of `policies` from contenders and their samples."""
import records


def entry(contender, samples, host, wanted, precision):
    """`wanted`: float64 outputs, or None."""
    made = {"name": contender.name, "latency_us": records.statistics(samples), "measured": contender.how,
            **contender.details(), "first_result_s": contender.first_result_s}
    made.setdefault("prepare_s", contender.first_result_s)  # ours tells the parts
    if host:
        made["host_us"] = records.statistics(host)
    if wanted is not None:
        made["rel_l2_float64"] = records.rel_l2(contender.outputs(), wanted)
    if "verification" not in made:
        error, limit = made.get("rel_l2_float64"), records.SANITY[precision]
        made["verification"] = {"passed": error is None or error <= limit, "rel_l2": error, "max_scaled": None,
                                "tolerance": limit}
    return made


def better(entries):
    """Of two layouts of one system the faster of those that are right, with the other's figures."""
    best = {}
    for made in entries:
        other = best.get(made["name"])
        if other:
            made, slower = sorted((other, made), key=lambda e: (not e["verification"]["passed"],
                                                                e["latency_us"]["median"]))
            made["other_layout"] = {"layout": slower["layout"], "median": slower["latency_us"]["median"],
                                    "first_result_s": slower["first_result_s"],
                                    "passed": slower["verification"]["passed"]}
        best[made["name"]] = made
    base = best["sequential"]["latency_us"]["median"] if "sequential" in best else None
    for made in best.values():
        if base and made["latency_us"]["median"]:
            made["speedup_vs_sequential"] = base / made["latency_us"]["median"]
    return list(best.values())
