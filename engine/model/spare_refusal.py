"""Why a pod gets no node that could be had: too much of it would lie idle, or the pod is to start none."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from attrs import frozen


@frozen
class GpuWaste:
    """Each type that would do leaves more of its GPUs unused than the pool accepts, whoever comes along.

    The pod asks ``requested`` of ``resource``; ``smallest_type``, of those that would do the one with the fewest, has
    ``smallest``. ``allowed`` is the share, 0 to 1, that may go unused.
    """

    code: ClassVar[str] = "gpu-waste"
    resource: str
    requested: int
    smallest: int
    smallest_type: str
    allowed: Decimal


@frozen
class WaitsForSpareCapacity:
    """Pods of ``priority_class`` start no nodes, and nothing that is there or coming has room left for this one."""

    code: ClassVar[str] = "waits-for-spare-capacity"
    priority_class: str
