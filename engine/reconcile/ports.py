"""The effects that a pass needs, each as small as it can be. assembly.py builds them once for an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from attrs import frozen

from engine.actuate.drain import Drainer
from engine.actuate.labels import Labeler
from engine.converge.store import DocumentStore
from engine.model.catalog import Catalog
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts
from engine.observe.cluster import ClusterFacts
from engine.reconcile.workspace import Workspace

Tell = Callable[[str], None]
OnEvent = Callable[[object], None]


class CloudReader(Protocol):
    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts: ...


class ClusterSource(Protocol):
    """A cluster that may want to know the machines first: a simulated one registers nodes for them."""

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts: ...


class Converging(Protocol):
    def converge(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        *,
        refresh: bool = False,
        known_ids: Mapping[str, str] = ...,
    ) -> Outcome: ...

    def destroy(
        self, document: DesiredDocument | None, instances: Sequence[Instance], on_progress: OnEvent
    ) -> Outcome: ...

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None: ...

    def adoptable(self, document: DesiredDocument, instances: Sequence[Instance]) -> Mapping[str, str]: ...

    def ensure_stack(self) -> None: ...


@frozen
class Ports:
    """``converger`` is built on demand, since it alone imports Pulumi; it is told of progress while a CLI is built."""

    workspace: Workspace
    environment: Environment
    policy: Policy
    catalog: Catalog
    store: DocumentStore
    cloud: CloudReader
    cluster: ClusterSource
    drainer: Drainer
    labeler: Labeler
    converger: Callable[[Tell], AbstractContextManager[Converging]]
    now: Callable[[], datetime]
