"""What a pool says of its GPUs' use, of labels that come later and of what a node costs besides its price: our own
annotations on a NodePool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from engine.model import labels
from engine.model.money import FREE, UsdPerHour
from engine.model.policy import Spare
from engine.model.quantity import ACCELERATORS
from engine.policy.fields import is_label_key
from engine.policy.findings import ObjectFindings, did_you_mean

CAPACITY_ANNOTATIONS = (labels.EXPECTED_LABELS, labels.MAX_GPU_WASTE, labels.HEADROOM, labels.NODE_COST)

_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)(%?)")
_MONEY = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?")
_MOST_NODE_COST = UsdPerHour.parse(100)
_SPARE = re.compile(r"([^=;,\s]+)=([0-9]{1,4})(;zone=each)?")
# Each spare device is placed as a pod is.
_MOST_SPARE = 1_000
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SHOWN_CHARACTERS = 80


def read_max_gpu_waste(annotations: Mapping[str, str], findings: ObjectFindings) -> Decimal | None:
    """The share, 0 to 1, or None where the pool does not say; what is wrong goes to ``findings``."""
    text = annotations.get(labels.MAX_GPU_WASTE)
    if text is None:
        return None
    found = _SHARE.fullmatch(text.strip(" "))
    share = Decimal(found[1]) / (100 if found[2] else 1) if found else None
    if share is None or share > 1:
        message = f"is {text[:_SHOWN_CHARACTERS]!r}; it is the share of a new node's GPUs that may go unused"
        _bad(labels.MAX_GPU_WASTE, message, 'write "0", "0.5" or "50%"', findings)
        return None
    return share


def read_node_cost(annotations: Mapping[str, str], findings: ObjectFindings) -> UsdPerHour:
    """Dollars an hour, 0 to 100, none where the pool does not say; what is wrong goes to ``findings``."""
    text = annotations.get(labels.NODE_COST, "0").strip(" ")
    cost = UsdPerHour.parse(text) if _MONEY.fullmatch(text) else None
    if cost is None or cost > _MOST_NODE_COST:
        message = f"is {text[:_SHOWN_CHARACTERS]!r}; it is what each node costs an hour besides its price, up to 100"
        _bad(labels.NODE_COST, message, 'write dollars an hour, such as "0.02"', findings)
        return FREE
    return cost


def read_headroom(annotations: Mapping[str, str], findings: ObjectFindings) -> tuple[Spare, ...]:
    """What is kept spare, in the order of resources; what is wrong goes to ``findings``."""
    spares: dict[str, Spare] = {}
    for part in _parts(annotations, labels.HEADROOM):
        found = _SPARE.fullmatch(part)
        if found is None:
            message = f"says {part[:_SHOWN_CHARACTERS]!r}; it is how many GPUs the pool keeps spare"
            hint = "write nvidia.com/gpu=2, or nvidia.com/gpu=2;zone=each for so many in each zone"
            _bad(labels.HEADROOM, message, hint, findings)
        elif found[1] not in ACCELERATORS:
            message = f"speaks of {found[1][:_SHOWN_CHARACTERS]}, which is no accelerator's resource"
            _bad(labels.HEADROOM, message, did_you_mean(found[1], ACCELERATORS), findings)
        elif int(found[2]) > _MOST_SPARE:
            message = f"keeps {found[2]} of {found[1]} spare; {_MOST_SPARE} is the most"
            _bad(labels.HEADROOM, message, f"write {found[1]}={_MOST_SPARE} or less", findings)
        elif found[1] in spares:
            _bad(labels.HEADROOM, f"names {found[1]} twice", "keep one of them", findings)
        else:
            spares[found[1]] = Spare(found[1], devices=int(found[2]), in_each_zone=bool(found[3]))
    return tuple(spares[resource] for resource in sorted(spares) if spares[resource].devices)


def read_expected_labels(
    annotations: Mapping[str, str], own: Mapping[str, str], findings: ObjectFindings
) -> Mapping[str, str | None]:
    """Labels that come by themselves, None for a key that does not; what is wrong goes to ``findings``.

    ``own`` are the labels that the pool itself gives its nodes: these it knows already.
    """
    expected: dict[str, str | None] = {}
    for part in _parts(annotations, labels.EXPECTED_LABELS):
        key, is_valued, value = part.partition("=")
        is_denied = not is_valued and key.endswith("-")
        key = key.removesuffix("-") if is_denied else key
        is_label = is_label_key(key) and bool(_LABEL_VALUE.fullmatch(value))
        if not is_label or not (is_valued or is_denied):
            message = f"says {part[:_SHOWN_CHARACTERS]!r}; it names labels that nodes get once they are up"
            _bad(labels.EXPECTED_LABELS, message, "write KEY=VALUE, or KEY- for one that does not come", findings)
        elif key in own or key in labels.WELL_KNOWN or key in labels.ALIASES or key == labels.HOSTNAME:
            message = f"names {key}, which the pool's nodes have from their start"
            _bad(labels.EXPECTED_LABELS, message, "remove it", findings)
        elif key in expected:
            _bad(labels.EXPECTED_LABELS, f"names {key} twice", "keep one of them", findings)
        else:
            expected[key] = None if is_denied else value
    return {key: expected[key] for key in sorted(expected)}


def _parts(annotations: Mapping[str, str], key: str) -> list[str]:
    return [part for written in annotations.get(key, "").split(",") if (part := written.strip())]


def _bad(key: str, message: str, hint: str, findings: ObjectFindings) -> None:
    findings.error(("metadata", "annotations", key), "bad-annotation", f"{key} {message}", hint)
