"""What any plan for the pods of the mix costs at the least, worked out without the scheduler.

A linear program: parts of nodes may be bought. They must hold all that the pods ask for together, and no node holds two
of the pods that keep apart on hosts. What a node's daemons and labels take is not known here, so the bound is only true
where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np

from engine.model import labels as keys
from engine.model.pod import Pod
from engine.scheduling.packing.master import quiet_solver
from engine.scheduling.problem import NodeOption

MICROS = 1_000_000


def least_usd_per_hour(pods: Sequence[Pod], options: Sequence[NodeOption]) -> float:
    """Dollars an hour, for pods that are nowhere yet."""
    resources = ("cpu", "memory", "pods")
    asked = [sum(pod.placing.requests.amount(name) for pod in pods) for name in resources]
    hosts = sum(any(term.key == keys.HOSTNAME for term in pod.placing.pod_anti_affinity) for pod in pods)
    solver = quiet_solver()
    # Shares of all that is asked for: numbers near one.
    for _ in resources:
        solver.addRow(1.0, highspy.kHighsInf, 0, np.array([], np.int32), np.array([], np.float64))
    solver.addRow(float(hosts), highspy.kHighsInf, 0, np.array([], np.int32), np.array([], np.float64))
    rooms = {
        (each.usd_per_hour.micros, *(each.allocatable.amount(name) for name in resources))
        for each in options
        if each.usd_per_hour is not None
    }
    for micros, *room in sorted(rooms):
        shares = [here / total for here, total in zip(room, asked, strict=True)]
        solver.addCol(
            micros / MICROS, 0.0, highspy.kHighsInf, 4, np.arange(4, dtype=np.int32), np.array([*shares, 1.0])
        )
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise SystemExit(f"bench-mix: no bound: {solver.getModelStatus()}")
    return float(solver.getObjectiveValue())
