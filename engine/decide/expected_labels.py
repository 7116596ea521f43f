"""Labels that nodes get by themselves once they are up: which of those that are foretold are believed.

A pod that selects on such a label gets a node that will have it. Where the promise is not kept, the pod would get one
node after another, and wait for ever. So what a standing node of the pool lacks is not expected there any more: of its
type, or of any type where no node of the pool shows the label at all, as where nothing in the cluster writes it. That
is remembered for a day after the last such node was seen, and then tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from attrs import evolve

from engine.catalog.predicted_labels import predicted_labels
from engine.decide.bring_up import BringUp
from engine.model.catalog import Catalog, InstanceType
from engine.model.ledger import Ledger
from engine.model.policy import NodePool, Policy

DOUBTED_FOR = timedelta(days=1)
_EVERY_TYPE = "*"


def expected_labels(pool: NodePool, kind: InstanceType, doubts: Iterable[str]) -> Mapping[str, str]:
    """What comes to a pool's nodes of a type by itself, ``doubts`` left out, and what the pool's requirements name."""
    doubted = frozenset(doubts)
    named = {requirement.key for requirement in pool.requirements}
    return {
        key: value
        for key, value in _promised(pool, kind).items()
        if key not in named and not doubted & {_doubt(pool.name, kind.name, key), _doubt(pool.name, _EVERY_TYPE, key)}
    }


def given_labels(pool: NodePool, kinds: Iterable[InstanceType]) -> Mapping[str, Mapping[str, str]]:
    """The types, by name, that a pool's requirements about such labels leave, each with those labels that they name.

    A label that a requirement names is the pool's to give, as any other; what is foretold only says which value a type
    has, and which types have none that is permitted. Where no type has one, the pool means something else by the label,
    and nothing is held against it.
    """
    promised = {kind.name: _promised(pool, kind) for kind in kinds}
    given: dict[str, dict[str, str]] = {name: {} for name in promised}
    for requirement in pool.requirements:
        key = requirement.key
        meeting = {name: told for name in given if requirement.admits(told := promised[name].get(key))}
        if meeting and any(key in labels for labels in promised.values()):
            given = {name: given[name] | ({key: told} if told is not None else {}) for name, told in meeting.items()}
    return given


def doubts_about(pool: NodePool, ledger: Ledger, now: datetime) -> frozenset[str]:
    """Those of the ledger's doubts that hold for the pool."""
    own = f"{pool.name} "
    return frozenset(doubt for doubt, until in ledger.label_doubts.items() if now < until and doubt.startswith(own))


def doubted_labels(pool: NodePool, ledger: Ledger, now: datetime) -> Mapping[str, datetime]:
    """The labels of which the ledger has doubts, of whichever types, and until when the last of them holds."""
    until: dict[str, datetime] = {}
    for doubt in sorted(doubts_about(pool, ledger, now)):
        key = doubt.rpartition(" ")[2]
        until[key] = max(until.get(key, now), ledger.label_doubts[doubt])
    return until


def with_label_doubts(
    ledger: Ledger, brought: Iterable[BringUp], policy: Policy, catalog: Catalog, now: datetime
) -> Ledger:
    """The ledger once the nodes that are up have been looked at. A node has its pool's accelerator grace to get all its
    labels, since what writes them starts after it."""
    seen = _Seen()
    pools = {pool.name: pool for pool in policy.node_pools}
    kinds = {kind.name: kind for kind in catalog.instance_types}
    promised: dict[tuple[str, str], Mapping[str, str]] = {}
    for each in brought:
        claim, node = each.sighting.claim, each.sighting.node
        pool, kind = pools.get(claim.node_pool), kinds.get(claim.inputs.instance_type)
        if node is None or pool is None or kind is None or each.is_settling or not each.is_initialized:
            continue
        of_type = (pool.name, kind.name)
        if of_type not in promised:
            promised[of_type] = _promised(pool, kind)
        for key, value in promised[of_type].items():
            if key not in claim.labels:
                seen.note(of_type, key, value, node.labels.get(key))
    doubts = seen.doubts(ledger.label_doubts, now)
    return ledger if doubts == ledger.label_doubts else evolve(ledger, label_doubts=doubts)


class ComingLabels:
    """What labels machines of ours are still to get, by what their pools and types promise."""

    def __init__(self, policy: Policy, catalog: Catalog, ledger: Ledger, now: datetime) -> None:
        self._pools = {pool.name: pool for pool in policy.node_pools}
        self._catalog = catalog
        self._ledger, self._now = ledger, now
        self._known: dict[tuple[str, str], Mapping[str, str]] = {}

    def of(self, brought: BringUp) -> Mapping[str, str]:
        """Empty once the node is up and has had its time: what it shows then is what it has."""
        is_coming = brought.milestones.initialized_at is None and brought.counts_as_promised
        if not (is_coming or brought.is_settling):
            return {}
        claim = brought.sighting.claim
        of_type = (claim.node_pool, claim.inputs.instance_type)
        if of_type not in self._known:
            pool, kind = self._pools.get(claim.node_pool), self._catalog.instance_type(claim.inputs.instance_type)
            self._known[of_type] = (
                expected_labels(pool, kind, doubts_about(pool, self._ledger, self._now))
                if pool is not None and kind is not None
                else {}
            )
        return self._known[of_type]


class _Seen:
    """What standing nodes have of the labels that were foretold."""

    def __init__(self) -> None:
        self._lacking: set[tuple[str, str, str]] = set()
        self._kept: set[tuple[str, str, str]] = set()
        # Pools and keys of which some node shows a value, be it another than was foretold.
        self._shown: set[tuple[str, str]] = set()

    def note(self, of_type: tuple[str, str], key: str, foretold: str, shown: str | None) -> None:
        pool, kind = of_type
        if shown is not None:
            self._shown.add((pool, key))
        (self._kept if shown == foretold else self._lacking).add((pool, kind, key))

    def doubts(self, before: Mapping[str, datetime], now: datetime) -> Mapping[str, datetime]:
        settled = {_doubt(*each) for each in self._kept - self._lacking}
        settled |= {_doubt(pool, _EVERY_TYPE, key) for pool, key in self._shown}
        doubts = {doubt: until for doubt, until in before.items() if now < until and doubt not in settled}
        for pool, kind, key in self._lacking:
            is_shown = (pool, key) in self._shown
            doubt = _doubt(pool, kind if is_shown else _EVERY_TYPE, key)
            # Renewed twice a day, so that a pass in which nothing happened changes nothing.
            if doubts.get(doubt, now) < now + DOUBTED_FOR / 2:
                doubts[doubt] = now + DOUBTED_FOR
        return {doubt: doubts[doubt] for doubt in sorted(doubts)}


def _promised(pool: NodePool, kind: InstanceType) -> Mapping[str, str]:
    """What the catalog foretells and the pool's file says; the pool's own labels are no matter of expectation."""
    told: dict[str, str | None] = {**predicted_labels(kind), **pool.expected_labels}
    return {key: value for key, value in told.items() if value is not None and key not in pool.labels}


def _doubt(pool: str, kind: str, key: str) -> str:
    return f"{pool} {kind} {key}"
