"""Why a pod waits for one of its volumes, whatever nodes there are."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen


@frozen
class VolumeNotReady:
    """No node can run the pod while its PersistentVolumeClaim ``claim`` is as it is; ``why`` says how that is.

    The cases are those in which kube-scheduler's volume plugins refuse a pod on every node, and volumes of one pod that
    no single node can reach. A node would not help, so none is made.
    """

    code: ClassVar[str] = "volume-not-ready"
    claim: str
    why: str
