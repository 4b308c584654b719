#!/usr/bin/env python3
"""Prints docs/results.md: every record under bench/results/ as a table.

    bench/results_page.py > docs/results.md
"""
import records

HEAD = """# Results

Made by `bench/results_page.py` from the records under `bench/results/` (raw samples, device, versions, commit and
command are in them). Latencies are microseconds: device events around one launch, the device kept busy until just
before; on a CPU the host clock around one call. A record's policies were sampled in turn in one process.
`error` is the largest relative L2 error of the nodes checked (of the outputs, in records with peers) against float64.
The SPAA paper's tables 1 and 2 and the sets that gain from joint choice, from recorded profiles: [profile-tables.md](profile-tables.md).
Images a second with several requests in flight: [throughput.md](throughput.md).
"""
COLUMNS = ("model", "dtype", "batch", "policy", "median", "p10", "p90", "n", "vs sequential", "error", "verdict")


def row(record, policy):
    latency = policy["latency_us"]
    verification = policy.get("verification") or {}
    error = policy.get("rel_l2_float64", verification.get("rel_l2"))
    layout = policy.get("layout")
    verdict = "ok" if verification.get("passed") else "WRONG" if verification else "not checked"
    limit, end_to_end = verification.get("end_to_end_limit"), verification.get("end_to_end")
    if verdict == "WRONG" and limit and end_to_end and end_to_end > limit:
        verdict = f"end to end {end_to_end:.1e}, limit {limit:.1e}"
    return (record["model"], record["dtype"], str(record["batch"]),
            policy["name"] + (f" ({layout})" if layout else ""), f"{latency['median']:.1f}", f"{latency['p10']:.1f}",
            f"{latency['p90']:.1f}", str(len(latency["samples"])), f"{policy.get('speedup_vs_sequential', 0):.2f}",
            "" if error is None else f"{error:.1e}", verdict)


def main():
    print(HEAD)
    for path in sorted((records.ROOT / "bench" / "results").glob("*.json*")):
        found = records.of_schema(path)
        if not found:  # of another page: throughput.md
            continue
        device = found[0]["device"]
        print(f"## {path.name}\n\n{device['name']} ({records.versions(device)}), commit {records.commit_of(found[0])}\n")
        print("| " + " | ".join(COLUMNS) + " |")
        print("|" + "---|" * len(COLUMNS))
        for record in found:
            for policy in record["policies"]:
                print("| " + " | ".join(row(record, policy)) + " |")
        print()


if __name__ == "__main__":
    main()
