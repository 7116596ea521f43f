"""What comes to a simulated cluster: pods, when they come, and how long they stay."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from attrs import frozen

from engine.model.pod import Pod


class Stay(str, Enum):
    """``JOB`` runs for its time once it has started, from the beginning again where it is stopped; ``REPLICA`` leaves
    when its time is up, whether it ran or not."""

    JOB = "job"
    REPLICA = "replica"


@frozen
class Task:
    """One pod to come. ``after`` counts from the simulation's begin; ``lasts`` None is for good.

    The pod's own time of creation is of no account: it is made when it comes.
    """

    after: timedelta
    pod: Pod
    lasts: timedelta | None = None
    stay: Stay = Stay.JOB
