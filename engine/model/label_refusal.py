"""Why a pod gets no node although one was expected to have the label that it selects on."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from attrs import frozen


@frozen
class LabelDidNotCome:
    """Nodes of the pool were expected to get the label ``key`` by themselves, and one that is up, or was lately, has it
    not, or has another value. So no node is launched for it; that is tried again at ``until``."""

    code: ClassVar[str] = "label-did-not-come"
    key: str
    wanted: str
    until: datetime
