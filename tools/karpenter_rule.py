"""Karpenter's rule for new nodes, imitated for comparison: pods by CPU, then memory, largest first; each onto the claim
with the fewest pods where any type still holds all; else onto a new claim. A claim is bought as the cheapest type left.

Rule: kubernetes-sigs/karpenter, pkg/controllers/provisioning/scheduling (queue.go, scheduler.go, nodeclaim.go). No
consolidation, no daemonsets, no topology.
"""

from __future__ import annotations

import heapq

import numpy as np

from engine.scheduling.packing.problem import PackingProblem


def karpenter_nodes(problem: PackingProblem) -> tuple[int, int]:
    """Micro-dollars an hour and nodes. Resources of the problem must begin with CPU and memory."""
    rooms = np.array([each.room for each in problem.kinds])
    prices = np.array([each.micros_per_hour for each in problem.kinds])
    taken: list[np.ndarray] = []
    types: list[np.ndarray] = []
    pods: list[int] = []
    order = sorted(range(len(problem.classes)), key=lambda index: problem.classes[index].requests, reverse=True)
    for index in order:
        asked = problem.classes[index]
        request = np.array(asked.requests)
        allowed = np.zeros(len(prices), np.bool_)
        allowed[list(asked.kinds)] = True
        fitting = allowed & (rooms >= request).all(axis=1)
        if not fitting.any():
            continue
        # A claim that has no room for a pod of the class has none for the next, either.
        claims = [(count, claim) for claim, count in enumerate(pods)]
        heapq.heapify(claims)
        for _ in range(asked.count):
            while claims:
                count, claim = heapq.heappop(claims)
                left = types[claim] & allowed & (rooms >= taken[claim] + request).all(axis=1)
                if left.any():
                    taken[claim], types[claim], pods[claim] = taken[claim] + request, left, count + 1
                    break
            else:
                claim = len(pods)
                taken.append(request.copy())
                types.append(fitting)
                pods.append(1)
            heapq.heappush(claims, (pods[claim], claim))
    return sum(int(prices[each].min()) for each in types), len(pods)
