"""How a pool's nodes are replaced, and what a move for money must bring in: our own annotations on a NodePool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

from engine.model import labels
from engine.model.money import UsdPerHour
from engine.model.upkeep import LONGEST_WARM_UP, Upkeep
from engine.policy.annotated_spans import Span, read_span
from engine.policy.findings import ObjectFindings

_PLAIN = Upkeep()
_SPANS = {
    labels.ROLLOUT_SOAK: Span(_PLAIN.soak, timedelta(days=7)),
    labels.REPAID_WITHIN: Span(_PLAIN.repaid_within, timedelta(days=30)),
    labels.MIN_NODE_LIFE: Span(_PLAIN.node_life, timedelta(days=30)),
    labels.WARM_UP: Span(_PLAIN.warm_up, LONGEST_WARM_UP),
}
UPKEEP_ANNOTATIONS = (
    *_SPANS,
    labels.SURGE,
    labels.ROLLOUT_CANARY,
    labels.MIN_SAVING,
    labels.MIN_SPOT_SAVING,
    labels.RETURN_TO_PREFERRED,
    labels.QUIET_DESTINATIONS,
)

_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")
_MONEY = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_WHOLE = re.compile(r"[0-9]{1,4}")
_MOST_CANARIES = 1_000
_SHOWN_CHARACTERS = 80


def read_upkeep(annotations: Mapping[str, str], findings: ObjectFindings) -> Upkeep:
    """The settings, the plain ones where none is written; what is wrong goes to ``findings``."""
    saving, share = _least(annotations, findings)
    return Upkeep(
        surge=_surge(annotations, findings),
        canaries=_canaries(annotations, findings),
        soak=_span(labels.ROLLOUT_SOAK, annotations, findings),
        least_saving=saving,
        least_share=share,
        spot_share=_share(labels.MIN_SPOT_SAVING, _PLAIN.spot_share, annotations, findings),
        repaid_within=_span(labels.REPAID_WITHIN, annotations, findings),
        node_life=_span(labels.MIN_NODE_LIFE, annotations, findings),
        warm_up=_span(labels.WARM_UP, annotations, findings),
        returns=_flag(labels.RETURN_TO_PREFERRED, annotations, findings),
        quiet_destinations=_flag(labels.QUIET_DESTINATIONS, annotations, findings),
    )


def _surge(annotations: Mapping[str, str], findings: ObjectFindings) -> int | None:
    text = annotations.get(labels.SURGE)
    if text not in (None, "0", "1"):
        message = "it says whether another node is there before one goes"
        hint = 'write "0" for never, "1" for always, or nothing for wherever there is room'
        _bad(labels.SURGE, text, message, hint, findings)
        return None
    return None if text is None else int(text)


def _canaries(annotations: Mapping[str, str], findings: ObjectFindings) -> int:
    text = annotations.get(labels.ROLLOUT_CANARY, str(_PLAIN.canaries))
    if not (_WHOLE.fullmatch(text) and int(text) <= _MOST_CANARIES):
        message = f"it is how many nodes a change is tried on first, at most {_MOST_CANARIES}"
        _bad(labels.ROLLOUT_CANARY, text, message, 'write a whole number, "0" for no trial', findings)
        return _PLAIN.canaries
    return int(text)


def _least(annotations: Mapping[str, str], findings: ObjectFindings) -> tuple[UsdPerHour, Decimal]:
    """An amount, a share, or both with a comma between; what is not written asks for nothing of its kind."""
    text = annotations.get(labels.MIN_SAVING)
    if text is None:
        return _PLAIN.least_saving, _PLAIN.least_share
    amounts: list[UsdPerHour] = []
    shares: list[Decimal] = []
    for part in (each.strip() for each in text.split(",")):
        if (found := _SHARE.fullmatch(part)) is not None and Decimal(found[1]) <= 100:
            shares.append(Decimal(found[1]) / 100)
        elif _MONEY.fullmatch(part):
            amounts.append(UsdPerHour.parse(part))
        else:
            _bad(labels.MIN_SAVING, text, "it is what a move must save", 'write "0.05", "10%" or "0.05,10%"', findings)
            return _PLAIN.least_saving, _PLAIN.least_share
    if len(amounts) > 1 or len(shares) > 1:
        _bad(labels.MIN_SAVING, text, "it says the same twice", "keep one amount and one share", findings)
    return (amounts[0] if amounts else UsdPerHour(0)), (shares[0] if shares else Decimal(0))


def _share(key: str, plain: Decimal, annotations: Mapping[str, str], findings: ObjectFindings) -> Decimal:
    text = annotations.get(key)
    if text is None:
        return plain
    found = _SHARE.fullmatch(text.strip())
    if found is None or Decimal(found[1]) > 100:
        hint = f'write "{_as_percentage(text)}"' if _MONEY.fullmatch(text) else 'write a percentage, such as "15%"'
        _bad(key, text, "it is a share of the price of what goes, up to 100%", hint, findings)
        return plain
    return Decimal(found[1]) / 100


def _as_percentage(number: str) -> str:
    """What a number without a sign most likely means: ``0.15`` and ``15`` both 15%."""
    written = Decimal(number)
    return f"{(written * 100 if written <= 1 else min(written, Decimal(100))).normalize():f}%"


def _span(key: str, annotations: Mapping[str, str], findings: ObjectFindings) -> timedelta:
    return read_span(key, _SPANS[key], annotations, findings)


def _flag(key: str, annotations: Mapping[str, str], findings: ObjectFindings) -> bool:
    text = annotations.get(key, "false")
    if text not in ("true", "false"):
        _bad(key, text, "it is a yes or a no", 'write "true" or "false"', findings)
    return text == "true"


def _bad(key: str, text: str | None, message: str, hint: str, findings: ObjectFindings) -> None:
    shown = (text or "")[:_SHOWN_CHARACTERS]
    findings.error(("metadata", "annotations", key), "bad-annotation", f"{key} is {shown!r}; {message}", hint)
