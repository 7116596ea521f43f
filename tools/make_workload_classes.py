"""Makes engine/sandbox/data/openb_classes.csv from the openb pod list of the Alibaba GPU cluster trace of 2023.

    python tools/make_workload_classes.py OPENB_POD_LIST_CSV

Only figures of classes go into the table: how many pods of the trace ask for the same CPU, memory, GPUs and quality of
service. No row of the trace does.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

TABLE = Path(__file__).parent.parent / "engine" / "sandbox" / "data" / "openb_classes.csv"

HEADER = """\
# How many pods of a production GPU cluster ask for what: classes and counts, no row of the trace itself.
# source: openb_pod_list_default.csv of the Alibaba cluster-trace-gpu-v2023, in the Apache-2.0 copy of
# hkust-adsl/kubernetes-scheduler-simulator, commit 8f3d6417
# cite: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
# USENIX ATC 2023
# A share of a GPU counts as a whole GPU. tier: latency (LS, Guaranteed, Burstable) or batch (BE, best effort).
# Made by tools/make_workload_classes.py.
"""

COLUMNS = ("cpu_milli", "memory_mib", "gpus", "tier", "pods")


def pod_class(row: dict[str, str]) -> tuple[int, int, int, str]:
    """(millicores, MiB, GPUs, tier) of one pod of the trace; ``num_gpu`` is 1 for a share of one too."""
    tier = "batch" if row["qos"] == "BE" else "latency"
    return int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]), tier


def main(pod_list: Path) -> None:
    with pod_list.open(encoding="utf-8", newline="") as file:
        counts = Counter(pod_class(row) for row in csv.DictReader(file))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*asked, pods) for asked, pods in sorted(counts.items()))
    print(f"{len(counts)} classes of {counts.total()} pods written to {TABLE}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/make_workload_classes.py OPENB_POD_LIST_CSV")
    main(Path(sys.argv[1]))
