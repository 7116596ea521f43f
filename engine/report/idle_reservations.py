"""What stays empty of reservations after a plan, and what would fill it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from engine.model import labels as keys
from engine.model.plan import Plan
from engine.model.reservation import IdleReservation, MatchCriteria, OpenReservations, ReservationKind, WhyIdle
from engine.report.tables import heading, indented, table
from engine.report.words import counted


def idle_section(plan: Plan) -> Iterator[RenderableType]:
    """Reserved capacity that is paid for and that nobody uses, in id order."""
    if not plan.idle_reservations:
        return
    yield heading(f"Idle reserved capacity {counted(sum(each.unused for each in plan.idle_reservations), 'place')}")
    rows = table("reservation", "type", "zone", "kind", ">unused", ">$/h", "~because")
    for each in plan.idle_reservations:
        kind = each.kind.value if each.kind is ReservationKind.CAPACITY_BLOCK else each.match_criteria.value
        unused = f"{each.unused} of {each.total}"
        cost = str(each.usd_per_hour) if each.usd_per_hour is not None else ""
        rows.add(each.id, each.instance_type, each.zone, kind, unused, cost, idle_words(each))
    yield indented(rows)


def idle_words(idle: IdleReservation) -> str:
    """Why the places stay empty, and the choice that there is."""
    pools = ", ".join(idle.node_pools)
    match idle.why:
        case WhyIdle.ENDING:
            return "it ends too soon for a new node"
        case WhyIdle.NO_CLASS_SELECTS_IT:
            return f"no EC2NodeClass selects it{_preference(idle)}"
        case WhyIdle.NO_POOL_PERMITS_IT:
            return "an EC2NodeClass selects it, but no pool of that class permits it"
        case WhyIdle.REFUSED_LATELY:
            return "it refused a launch lately, and is tried again"
        case WhyIdle.NO_POD_TAKES_IT:
            return f"no pod that waits takes it (pool {pools})"


def _preference(idle: IdleReservation) -> str:
    """What on-demand launches of the pools that match do with it."""
    if idle.match_criteria is not MatchCriteria.OPEN:
        return f"; it matches pool {', '.join(idle.node_pools)}"
    told = [
        f"pool {', '.join(names)}: {keys.OPEN_RESERVATIONS} {said.value}"
        for said, names in (
            (OpenReservations.LEAVE, [each for each in idle.node_pools if each not in idle.used_by]),
            (OpenReservations.USE, list(idle.used_by)),
        )
        if names
    ]
    return f"; on-demand launches of {'; of '.join(told)}"
