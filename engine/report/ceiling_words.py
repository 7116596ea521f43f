"""Ceilings of limit rules in a person's words and units."""

from __future__ import annotations

from engine.model.quantity import CPU, format_amount
from engine.model.refusal import CeilingReached
from engine.model.rule import LimitedResource

_GIBIBYTE = 2**30
_MESSAGE_CHARACTERS = 160
CEILING_UNITS = {
    LimitedResource.GPUS: "GPUs",
    LimitedResource.NODES: "nodes",
    LimitedResource.CPU: "cores",
    LimitedResource.MEMORY: "Gi of memory",
    LimitedResource.USD_PER_HOUR: "USD/h",
}


def ceiling_words(resource: LimitedResource, amount: int) -> str:
    """An amount of a limit rule without its unit: dollars with cents, cpu in cores, memory in Gi."""
    match resource:
        case LimitedResource.USD_PER_HOUR:
            return f"{amount / 1_000_000:,.2f}"
        case LimitedResource.CPU:
            return format_amount(CPU, amount)
        case LimitedResource.MEMORY:
            return f"{amount / _GIBIBYTE:,.1f}".removesuffix(".0")
        case _:
            return f"{amount:,}"


def ceiling_reached_words(refusal: CeilingReached) -> str:
    """``limit rule team-dollars: 40.00 of 50.00 USD/h by vision, this needs 12.24 more: ask for a larger share``."""
    resource = refusal.resource
    taken, limit, needed = (
        ceiling_words(resource, amount) for amount in (refusal.used + refusal.planned, refusal.limit, refusal.needed)
    )
    if refusal.error:
        whose = f" for {refusal.group}" if refusal.group else ""
        told = f"limit rule {refusal.rule} cannot be evaluated{whose}, so nothing is added"
        return f"{told} to {taken} {CEILING_UNITS[resource]}: {refusal.error}"
    by = f" by {refusal.group}" if refusal.group else ""
    told = f"limit rule {refusal.rule}: {taken} of {limit} {CEILING_UNITS[resource]}{by}, this needs {needed} more"
    return f"{told}: {_shortened(refusal.message)}" if refusal.message else told


def _shortened(message: str) -> str:
    """A rule's message, in one line that is not too long for a list."""
    line = " ".join(message.split())
    return line if len(line) <= _MESSAGE_CHARACTERS else f"{line[: _MESSAGE_CHARACTERS - 1]}…"
