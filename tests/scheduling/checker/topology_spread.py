"""Topology spread constraints.

Kubernetes documentation, "Pod Topology Spread Constraints": with DoNotSchedule, the number of matching pods in the
pod's domain less the least of all eligible domains stays within maxSkew. The model has no such constraint: pods that
have one carry this name, and are not placed.
"""

from __future__ import annotations

NAMES = ("topology spread (DoNotSchedule)",)
