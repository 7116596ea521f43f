"""A Karpenter beside us: its pools, the machines that it owns, and whether its controller is alive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from attrs import frozen

from engine.model.snapshot import KarpenterFacts
from engine.observe.json_fields import Json, mapping, moment, text
from engine.observe.workload_decoder import key_of

# The name of its leader election (sigs.k8s.io/karpenter, pkg/operator); charts put it into a namespace of choice.
LEADER_LEASE = "karpenter-leader-election"

# Its lease is renewed every few seconds and lapses after fifteen.
LIVE_FOR_SECONDS = 60.0
# How far ahead of ours the clock of its machine may be.
_SKEW = timedelta(minutes=5)


@frozen
class KarpenterClaim:
    """A NodeClaim: the node and the instance that it became, both empty until then."""

    name: str
    node: str
    instance_id: str


@frozen
class LeaderLease:
    """``holder`` is empty once it was given back; ``renewed_at`` is by the holder's clock."""

    holder: str
    renewed_at: datetime | None


def decode_pool_name(raw: Json) -> str:
    """A NodePool's name; raises BrokenObject."""
    return key_of(raw).name


def decode_claim(raw: Json) -> KarpenterClaim:
    """A NodeClaim of karpenter.sh/v1; raises BrokenObject."""
    status = mapping(raw, "status")
    provider_id = text(status, "providerID")
    return KarpenterClaim(key_of(raw).name, text(status, "nodeName"), provider_id.rsplit("/", 1)[-1])


def decode_lease(raw: Json) -> LeaderLease:
    """A Lease of coordination.k8s.io/v1; raises BrokenObject."""
    spec = mapping(raw, "spec")
    renewed_at = moment(spec, "renewTime") if spec.get("renewTime") is not None else None
    return LeaderLease(text(spec, "holderIdentity"), renewed_at)


def is_live(lease: LeaderLease, now: datetime, seconds_since_change: float | None) -> bool:
    """Whether its holder renewed it a moment ago.

    A renewal that was seen to happen counts by our own clock (``seconds_since_change``, None: none was seen). Else the
    time written in it does, within what clocks may differ by.
    """
    if not lease.holder or lease.renewed_at is None:
        return False
    if seconds_since_change is not None and seconds_since_change < LIVE_FOR_SECONDS:
        return True
    return -_SKEW < now - lease.renewed_at < timedelta(seconds=LIVE_FOR_SECONDS)


def karpenter_facts(
    pools: Iterable[str],
    claims: Iterable[KarpenterClaim],
    leases: Iterable[LeaderLease],
    now: datetime,
    seconds_since_change: Mapping[LeaderLease, float],
) -> KarpenterFacts:
    """All of it, each in order."""
    owned = tuple(claims)
    return KarpenterFacts(
        is_live=any(is_live(lease, now, seconds_since_change.get(lease)) for lease in leases),
        node_pools=tuple(sorted(pools)),
        nodes=tuple(sorted(claim.node for claim in owned if claim.node)),
        instance_ids=tuple(sorted(claim.instance_id for claim in owned if claim.instance_id)),
    )
