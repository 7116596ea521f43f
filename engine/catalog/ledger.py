"""The unavailable part of the Ledger: who refused a launch, and until when it is not asked again.

Karpenter bars an offering for a flat three minutes (pkg/cache/unavailableofferings.go of its AWS provider), however
often it refuses; here the time doubles with each refusal in a row. Once it is over, the offering is on probation: one
launch is tried, and more only after it gave a machine. So an empty zone is probed and not hammered.

What a quota or a zone's subnets refuse is refused to others, too: those are barred, and tried again, as one.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime, timedelta
from functools import cache

from attrs import evolve, frozen

from engine.catalog.quota import quota_class
from engine.catalog.refusal_codes import Reach, is_quota, reach
from engine.model.catalog import Offering
from engine.model.ledger import FailedBringUps, Ledger, Unavailable

FIRST_BACK_OFF = timedelta(minutes=3)
LONGEST_BACK_OFF = timedelta(minutes=60)

# Ours, told as a refusal is: the offering's machine came, and did not become a node in time.
NOT_INITIALIZED = "NotInitialized"

# After so many machines of one pool in a row that did not come up, the pool launches nothing for a while.
BRING_UPS_IN_A_ROW = 3
_BRING_UPS_FORGOTTEN = timedelta(hours=6)


@frozen
class Standing:
    """What an offering's refusals mean at one moment. ``barred``: it is not asked at all. Else it is on probation: one
    launch at a time is tried for each of the ``probes``, which are what refused, by name.

    ``by`` is the refusal that decides: that which bars it longest.
    """

    by: Unavailable
    barred: bool
    probes: tuple[str, ...] = ()


# Names are worked out of the same few thousand offerings again and again.
@cache
def names(offering_key: str, node_class: str) -> tuple[str, ...]:
    """All that may be barred and would bar the offering with it, by name; itself included."""
    return tuple(name for each in Reach if (name := _name(each, offering_key, node_class)))


def standing(ledger: Ledger, offering: Offering, node_class: str, now: datetime) -> Standing | None:
    """How the offering stands for nodes of a node class; None: nothing speaks against it."""
    if not ledger.unavailable_groups and offering.key not in ledger.unavailable:
        return None
    found = ((name, _found(ledger, name)) for name in names(offering.key, node_class))
    held = [(name, each) for name, each in found if each is not None and not _is_forgotten(each, now)]
    if not held:
        return None
    last = max((each for _, each in held), key=lambda each: (each.until, each.refusals, each.code))
    if now < last.until:
        return Standing(by=last, barred=True)
    # A machine that did not come up was no refusal: its pool has a probation of its own.
    probes = tuple(name for name, each in held if each.code != NOT_INITIALIZED)
    return Standing(by=last, barred=False, probes=probes) if probes else None


def with_refusal(ledger: Ledger, offering_key: str, code: str, now: datetime, node_class: str = "") -> Ledger:
    """The ledger after the offering refused a launch of the node class: out for 3 minutes, then 6, 12 and so on, up to
    60; and with it all that AWS's code speaks of.

    Several launches of one pass may be refused together: while the offering is out, a refusal changes nothing.
    """
    reaching = reach(code)
    name = _name(reaching, offering_key, node_class)
    if not name:
        # No group is known that it belongs to: then it is out alone.
        reaching, name = Reach.OFFERING, offering_key
    before = _found(ledger, name)
    if before is not None and now < before.until:
        return ledger
    refusals = before.refusals + 1 if before is not None and not _is_forgotten(before, now) else 1
    quota = name if is_quota(code) and reaching is not Reach.OFFERING else ""
    barred = Unavailable(until=now + back_off(refusals), refusals=refusals, code=code, quota=quota)
    if reaching is Reach.OFFERING:
        return evolve(ledger, unavailable={**ledger.unavailable, name: barred})
    return evolve(ledger, unavailable_groups={**ledger.unavailable_groups, name: barred})


def with_launch(ledger: Ledger, offering_key: str, node_class: str = "", launched_at: datetime | None = None) -> Ledger:
    """The ledger after the offering gave a machine: its refusals count no more, nor do those that it shares with
    others. That its last machine did not come up counts until one does.

    A machine that was launched before the last refusal says nothing of what came after; None: when is not known.
    """
    held = ((name, _found(ledger, name)) for name in names(offering_key, node_class))
    answered = {
        name
        for name, each in held
        if each is not None and each.code != NOT_INITIALIZED
        if launched_at is None or launched_at >= each.until - back_off(each.refusals)
    }
    return _without(ledger, answered)


def _found(ledger: Ledger, name: str) -> Unavailable | None:
    return ledger.unavailable_groups.get(name) or ledger.unavailable.get(name)


def _name(reaching: Reach, offering_key: str, node_class: str) -> str:
    """What is out, when an offering's refusal reaches so far; empty where nothing of the kind is known."""
    instance_type, zone, capacity_type = offering_key.split("/")[:3]
    match reaching:
        case Reach.OFFERING:
            return offering_key
        case Reach.SUBNETS:
            return f"subnets of EC2NodeClass {node_class} in {zone}" if node_class else ""
        case Reach.INSTANCE_TYPE:
            return f"{instance_type} instances, {capacity_type}"
        case Reach.VCPU_QUOTA:
            return quota_class(instance_type, capacity_type)
        case Reach.CAPACITY_TYPE:
            return capacity_type


def with_bring_up(ledger: Ledger, offering_key: str, node_pool: str) -> Ledger:
    """The ledger after a machine of the offering came up: neither the offering nor the pool has failed bring-ups any
    more. A refusal since its launch stays: that it came up says nothing of the next."""
    failed = ledger.unavailable.get(offering_key)
    if failed is not None and failed.code == NOT_INITIALIZED:
        ledger = _without(ledger, {offering_key})
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


def _without(ledger: Ledger, gone: Set[str]) -> Ledger:
    alone = {name: each for name, each in ledger.unavailable.items() if name not in gone}
    groups = {name: each for name, each in ledger.unavailable_groups.items() if name not in gone}
    if (len(alone), len(groups)) == (len(ledger.unavailable), len(ledger.unavailable_groups)):
        return ledger
    return evolve(ledger, unavailable=alone, unavailable_groups=groups)


def pruned(ledger: Ledger, now: datetime) -> Ledger:
    """Without all whose back-off ended so long ago that their failures say nothing any more."""
    held = (*ledger.unavailable.items(), *ledger.unavailable_groups.items())
    ledger = _without(ledger, {name for name, each in held if _is_forgotten(each, now)})
    pools = {pool: each for pool, each in ledger.bring_ups.items() if now < each.until + _BRING_UPS_FORGOTTEN}
    return ledger if len(pools) == len(ledger.bring_ups) else evolve(ledger, bring_ups=pools)


def not_beyond_back_off(ledger: Ledger, now: datetime) -> Ledger:
    """Without what is out for longer than so many failures in a row may bar it from now on: a clock that ran ahead has
    written that. The ledger itself, where nothing is."""
    alone = {name: _held_by(each, now) for name, each in ledger.unavailable.items() if _is_beyond(each, now)}
    groups = {name: _held_by(each, now) for name, each in ledger.unavailable_groups.items() if _is_beyond(each, now)}
    pools = {
        name: evolve(each, until=now + back_off(each.failures))
        for name, each in ledger.bring_ups.items()
        if each.until > now + back_off(each.failures)
    }
    if not (alone or groups or pools):
        return ledger
    return evolve(
        ledger,
        unavailable={**ledger.unavailable, **alone},
        unavailable_groups={**ledger.unavailable_groups, **groups},
        bring_ups={**ledger.bring_ups, **pools},
    )


def _is_beyond(barred: Unavailable, now: datetime) -> bool:
    return barred.until > now + back_off(barred.refusals)


def _held_by(barred: Unavailable, now: datetime) -> Unavailable:
    return evolve(barred, until=now + back_off(barred.refusals))


def back_off(refusals: int) -> timedelta:
    """How long an offering is out after so many refusals in a row (1 or more)."""
    doublings = min(refusals - 1, 10)  # 3 minutes doubled ten times is far above the longest
    return min(FIRST_BACK_OFF * (1 << doublings), LONGEST_BACK_OFF)


def _is_forgotten(barred: Unavailable, now: datetime) -> bool:
    """An hour after it came back. Earlier, and the next refusal would start again from three minutes."""
    return now >= barred.until + LONGEST_BACK_OFF
