"""Packing problems of the real workload traces, and what simpler rules pay for them. For the bench alone.

The traces and the instance types are not part of this project. They are read where they lie, in the folder ``shared``
beside the checkout, and their absence is an error that says so.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from engine.scheduling.packing.problem import NodeKind, PackClass, PackingProblem

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
CATALOG = DATA / "ec2_gpu_catalog.csv"
PODS = {"default": "openb_pod_list_default.csv", "spec33": "openb_pod_list_gpuspec33.csv"}
# MiB of one GPU of the models that pods of the trace name, somewhat below nominal; undisclosed models are our guess.
MODEL_MIB = {"T4": 15_000, "P100": 15_000, "V100M16": 15_000, "V100M32": 30_000, "A10": 22_000}
MIB_OF_UNDISCLOSED = 22_000
# The source of types that are no longer sold.
RETIRED = "moto-5.0.18"


@frozen
class Shape:
    """One instance type: what its node has for pods, in milli-CPU, MiB, GPUs and pods, and what an hour costs."""

    name: str
    room: tuple[int, int, int, int]
    micros_per_hour: int
    gpu_mib: int


@frozen
class Ask:
    """What one pod asks for, and the least memory of a GPU that does for it."""

    requests: tuple[int, int, int, int]
    gpu_mib: int = 0


def instance_types() -> list[Shape]:
    """The x86 types on sale with whole NVIDIA GPUs or none."""
    return [shape for row in _rows(CATALOG) if (shape := _shape(row)) is not None]


def pods(name: str) -> list[Ask]:
    """The pods of a list; a share of a GPU is rounded up to a whole one."""
    return [_ask(row) for row in _rows(DATA / "traces" / PODS[name])]


def drawn(asked: list[Ask], classes: int, count: int, seed: int) -> list[Ask]:
    """So many pods drawn from the commonest classes, as often as these occur."""
    commonest = Counter(asked).most_common(classes)
    chance = random.Random(seed)
    return chance.choices([each for each, _ in commonest], weights=[often for _, often in commonest], k=count)


def problem(asked: list[Ask], shapes: list[Shape], node_micros: int = 0) -> PackingProblem:
    """Nodes with GPUs are closed to pods without. ``node_micros`` is what a node costs an hour beside its price."""

    def may(ask: Ask, shape: Shape) -> bool:
        return bool(ask.requests[2]) == bool(shape.room[2]) and ask.gpu_mib <= shape.gpu_mib

    counted = sorted(Counter(asked).items(), key=lambda pair: (pair[0].requests, pair[0].gpu_mib))
    return PackingProblem(
        classes=tuple(
            PackClass(ask.requests, count, frozenset(i for i, shape in enumerate(shapes) if may(ask, shape)))
            for ask, count in counted
        ),
        kinds=tuple(NodeKind(shape.room, shape.micros_per_hour + node_micros) for shape in shapes),
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if not path.is_file():
        raise SystemExit(
            f"bench-packing: {path} is not there: the traces and the instance types are no part of this project"
        )
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _shape(row: dict[str, str]) -> Shape | None:
    name, price, gpus = row["instance_type"], row["on_demand_usd_hour_us_east_1"], int(row["gpu_count"] or 0)
    is_nvidia = row["gpu_manufacturer"] == "NVIDIA"
    skipped = "metal" in name or row["arch"] != "x86_64" or row["source"].startswith(RETIRED)
    if skipped or not price or bool(row["gpu_manufacturer"]) != (is_nvidia and gpus > 0):
        return None
    vcpus = int(row["vcpus"])
    most_pods = min(int(row["max_pods"]), 110 if vcpus <= 30 else 250)
    mib = int(int(row["memory_mib"]) * 0.925) - 255 - 11 * most_pods - 100
    room = (vcpus * 1000 - _kube_reserved(vcpus), mib, gpus, most_pods)
    return Shape(name, room, round(float(price) * 1_000_000), int(row["gpu_memory_mib"] or 0))


def _kube_reserved(vcpus: int) -> int:
    """Milli-CPU that the kubelet keeps: 6 % of the first, 1 % of the second, 0.5 % of two more, 0.25 % of the rest."""
    return int(60 + 10 * (vcpus > 1) + 5 * min(2, max(0, vcpus - 2)) + 2.5 * max(0, vcpus - 4))


def _ask(row: dict[str, str]) -> Ask:
    gpus = int(row["num_gpu"])
    models = [each for each in row["gpu_spec"].split("|") if each]
    least = min((MODEL_MIB.get(each, MIB_OF_UNDISCLOSED) for each in models), default=0) if gpus else 0
    return Ask((int(row["cpu_milli"]), int(row["memory_mib"]), gpus, 1), least)
