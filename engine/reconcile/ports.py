"""The effects that a pass needs, each as small as it can be. assembly.py builds them once for an environment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from attrs import frozen

from engine.actuate.api_server import ApiConnection
from engine.actuate.drain import Drainer
from engine.actuate.nominate import Nominator
from engine.actuate.registration import Registrar
from engine.converge.store import DocumentStore
from engine.model.catalog import Catalog
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts, Snapshot
from engine.observe.cluster import ClusterFacts
from engine.observe.interruptions import Message
from engine.reconcile.workspace import Workspace
from engine.report.summary import PassReport

Tell = Callable[[str], None]
OnEvent = Callable[[object], None]


class CloudReader(Protocol):
    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts: ...

    def read_claims(self, environment: Environment, names: Collection[str]) -> tuple[Instance, ...]:
        """The instances, alive or not, that carry one of these claims' names: all that a launch has to know."""


class ClusterSource(Protocol):
    """A cluster that may want to know the machines first: a simulated one registers nodes for them."""

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts: ...


class LiveSource(Protocol):
    """A cluster that tells when it has changed. ``revision`` grows with every change that could matter.

    ``unsynced`` names what is not seen whole, each with its reason; while it names anything, ``facts`` raises.
    ``wait_for_change`` returns the revision, early when it is beyond ``after`` or when somebody pokes.
    """

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def unsynced(self) -> tuple[str, ...]: ...

    def facts(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts: ...

    def revision(self) -> int: ...

    def wait_for_change(self, after: int, timeout_seconds: float) -> int: ...

    def poke(self) -> None: ...


class PassLease(Protocol):
    """Be the one who changes an environment. ``take`` says who else is it, in words, and nothing once we are.

    ``paused`` is why somebody paused the environment on the lease itself, as last seen; ``look`` sees again.
    ``remove`` takes away what a destroyed environment would leave of it, unless somebody else holds it by now.
    """

    def take(self) -> str: ...

    def is_held(self) -> bool: ...

    def release(self) -> None: ...

    def remove(self) -> None: ...

    def look(self) -> None: ...

    def paused(self) -> str: ...


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

    def foundation_stands(self, document: DesiredDocument) -> bool: ...

    def preflight(self, document: DesiredDocument, instances: Sequence[Instance]) -> None: ...

    def adoptable(self, document: DesiredDocument, instances: Sequence[Instance]) -> Mapping[str, str]: ...

    def ensure_stack(self) -> None: ...


class ConvergingSession(Protocol):
    """What converging keeps between passes. Different lanes may converge at once, one lane one at a time.

    ``prepare_lane`` makes a stack ahead of need. ``interrupt`` lets the steps in flight finish and begins no other;
    a second one breaks them off.
    """

    def lane(self, stack: str) -> Converging: ...

    def prepare_lane(self, stack: str) -> None: ...

    def interrupt(self) -> None: ...


class InterruptionSource(Protocol):
    """Where AWS's messages about instances that it takes away come from; each comes until it is deleted."""

    @property
    def name(self) -> str: ...

    def receive(self, wait_seconds: int = 0) -> tuple[Message, ...]: ...

    def delete(self, messages: Iterable[Message]) -> None: ...


class PassObserver(Protocol):
    """Told of each pass as it goes, in the deciding thread, once what is urgent has been done. Must not raise."""

    def pass_begins(self, pass_id: str) -> None: ...

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None: ...

    def converged(self, outcome: Outcome) -> None: ...

    def pass_ended(self, report: PassReport) -> None: ...


class RunAudience(Protocol):
    """Who watches a loop. ``is_quiet`` passes did nothing and changed nothing; only a heartbeat tells of them.

    ``on_event`` is given the engine's events, in the lanes' threads.
    """

    def say(self, line: str) -> None: ...

    def warn(self, fault: Fault) -> None: ...

    def pass_ended(self, report: PassReport, *, is_quiet: bool) -> None: ...

    def on_event(self, event: object) -> None: ...


@frozen
class Ports:
    """``session`` is opened on demand, since it alone imports Pulumi; it is told of progress while a CLI is built.

    ``live`` makes the source that a loop follows. ``api_server`` takes events; None where a cluster is simulated.
    ``interruptions`` None: the environment names no queue.
    """

    workspace: Workspace
    environment: Environment
    policy: Policy
    catalog: Catalog
    store: DocumentStore
    cloud: CloudReader
    cluster: ClusterSource
    drainer: Drainer
    registrar: Registrar
    nominator: Nominator
    lease: PassLease
    session: Callable[[Tell], AbstractContextManager[ConvergingSession]]
    live: Callable[[], LiveSource]
    api_server: ApiConnection | None
    now: Callable[[], datetime]
    interruptions: InterruptionSource | None = None
