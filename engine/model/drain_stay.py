"""Why a marked machine is not let go yet although it is to leave."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from attrs import frozen


@frozen
class Drains:
    """``pods`` pods, of those that were asked last, are still ending on the node."""

    code: ClassVar[str] = "drains"
    pods: int


@frozen
class DetachesVolumes:
    """All pods that had to leave have left, and these of their ``volumes`` are still attached to the node: names of
    PersistentVolumes, or of the attachment for a volume that is none. It is waited for no longer than ``until``, None
    is without an end."""

    code: ClassVar[str] = "detaches-volumes"
    volumes: tuple[str, ...]
    until: datetime | None
