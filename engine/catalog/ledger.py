"""The unavailable-offering part of the Ledger: who refused a launch, and until when it is not asked again.

Karpenter bars an offering for a flat three minutes (pkg/cache/unavailableofferings.go of its AWS provider), however
often it refuses; here the time doubles with each refusal in a row, so that an empty zone is probed and not hammered.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import evolve

from engine.model.catalog import Offering
from engine.model.ledger import FailedBringUps, Ledger, Unavailable

FIRST_BACK_OFF = timedelta(minutes=3)
LONGEST_BACK_OFF = timedelta(minutes=60)

# EC2's refusals that are about the account and not about the offering: more capacity elsewhere does not help.
QUOTA_CODES = frozenset(
    {
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
    }
)


# Ours, told as a refusal is: the offering's machine came, and did not become a node in time.
NOT_INITIALIZED = "NotInitialized"

# After so many machines of one pool in a row that did not come up, the pool launches nothing for a while.
BRING_UPS_IN_A_ROW = 3
_BRING_UPS_FORGOTTEN = timedelta(hours=6)


def is_quota(code: str) -> bool:
    """Whether AWS's error code means the account's quota, which a person has to raise."""
    return code in QUOTA_CODES


def is_available(ledger: Ledger, offering: Offering, now: datetime) -> bool:
    """Whether the offering may be asked for a launch: it never refused, or its back-off is over."""
    barred = ledger.unavailable.get(offering.key)
    return barred is None or now >= barred.until


def with_refusal(ledger: Ledger, offering_key: str, code: str, now: datetime) -> Ledger:
    """The ledger after the offering refused a launch: out for 3 minutes, then 6, 12 and so on, up to 60.

    Several launches of one pass may be refused together: while the offering is out, a refusal changes nothing.
    """
    before = ledger.unavailable.get(offering_key)
    if before is not None and now < before.until:
        return ledger
    refusals = before.refusals + 1 if before is not None and not _is_forgotten(before, now) else 1
    barred = Unavailable(until=now + back_off(refusals), refusals=refusals, code=code)
    return evolve(ledger, unavailable={**ledger.unavailable, offering_key: barred})


def with_launch(ledger: Ledger, offering_key: str) -> Ledger:
    """The ledger after the offering gave a machine: its refusals count no more. That its last machine did not come up
    counts until one does."""
    barred = ledger.unavailable.get(offering_key)
    return ledger if barred is None or barred.code == NOT_INITIALIZED else _without(ledger, offering_key)


def with_bring_up(ledger: Ledger, offering_key: str, node_pool: str) -> Ledger:
    """The ledger after a machine of the offering came up: neither the offering nor the pool has failures any more."""
    ledger = _without(ledger, offering_key)
    if node_pool not in ledger.bring_ups:
        return ledger
    return evolve(ledger, bring_ups={pool: each for pool, each in ledger.bring_ups.items() if pool != node_pool})


def with_failed_bring_up(ledger: Ledger, offering_key: str, node_pool: str, now: datetime) -> Ledger:
    """The ledger after a machine did not come up in time: its offering is out for a while, as after a refusal, and its
    pool has one more failure in a row."""
    ledger = with_refusal(ledger, offering_key, NOT_INITIALIZED, now)
    before = ledger.bring_ups.get(node_pool)
    failed = before.failures + 1 if before is not None else 1
    tried = FailedBringUps(failures=failed, until=now + back_off(failed))
    return evolve(ledger, bring_ups={**ledger.bring_ups, node_pool: tried})


def _without(ledger: Ledger, offering_key: str) -> Ledger:
    kept = {key: barred for key, barred in ledger.unavailable.items() if key != offering_key}
    return evolve(ledger, unavailable=kept) if len(kept) < len(ledger.unavailable) else ledger


def pruned(ledger: Ledger, now: datetime) -> Ledger:
    """Without the offerings and the pools whose back-off ended so long ago that their failures say nothing any more."""
    kept = {key: barred for key, barred in ledger.unavailable.items() if not _is_forgotten(barred, now)}
    pools = {pool: each for pool, each in ledger.bring_ups.items() if now < each.until + _BRING_UPS_FORGOTTEN}
    if (len(kept), len(pools)) == (len(ledger.unavailable), len(ledger.bring_ups)):
        return ledger
    return evolve(ledger, unavailable=kept, bring_ups=pools)


def back_off(refusals: int) -> timedelta:
    """How long an offering is out after so many refusals in a row (1 or more)."""
    doublings = min(refusals - 1, 10)  # 3 minutes doubled ten times is far above the longest
    return min(FIRST_BACK_OFF * (1 << doublings), LONGEST_BACK_OFF)


def _is_forgotten(barred: Unavailable, now: datetime) -> bool:
    """An hour after it came back. Earlier, and the next refusal would start again from three minutes."""
    return now >= barred.until + LONGEST_BACK_OFF
