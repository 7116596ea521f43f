"""Objects for Karpenter's API and ours to judge: bounds and odd spellings one at a time, and seeded mixtures."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from tests.cluster.karpenter_bases import BASES, IMPLEMENTED, Object
from tests.cluster.karpenter_class_edges import CLASS_EDGES
from tests.cluster.karpenter_crds import CLASS, POOL, Demand, at, demands, put
from tests.cluster.karpenter_pool_edges import POOL_EDGES, Edge
from tests.cluster.karpenter_violations import OF_CHANGES, null_at, violations

EDGES = (*POOL_EDGES, *CLASS_EDGES)


@frozen
class Generated:
    """An object, and what was done to it; ``breaks`` is the one demand that it was made to break."""

    what: str
    item: Object
    breaks: Demand | None = None


def generated(seed: int, mixtures: int) -> list[Generated]:
    """Every demand broken, every edge, nulls everywhere, and ``mixtures`` objects of several edges at once."""
    found = [
        Generated(f"base {index} of {kind}", item) for kind, bases in BASES.items() for index, item in enumerate(bases)
    ]
    for kind in (POOL, CLASS):
        found += _of_demands(kind)
    for edge in EDGES:
        found += [
            Generated(f"{edge.path}: {value!r:.60}", _edged(edge, value)) for value in (*edge.taken, *edge.refused)
        ]
    chosen = random.Random(seed)
    found += [_mixture(chosen) for _ in range(mixtures)]
    return found


def _of_demands(kind: str) -> list[Generated]:
    found = []
    for demand in demands(kind):
        if demand.keyword == "rule" and demand.value in OF_CHANGES:
            continue
        found += [Generated(f"broken: {demand}", item, demand) for item in violations(demand)]
        found += [Generated(f"null: {demand}", null_at(demand))] if demand.keyword == "type" else []
    return found


def _edged(edge: Edge, value: Any) -> Object:
    path = tuple(edge.path.split("."))
    fitting = [base for base in IMPLEMENTED[edge.kind] if at(base, path) is not None]
    return put((fitting or IMPLEMENTED[edge.kind])[0], path, value)


def _mixture(chosen: random.Random) -> Generated:
    """A base with some of its parts at other values that are taken, and now and then with one that is not."""
    kind = chosen.choice((POOL, CLASS))
    item = chosen.choice(IMPLEMENTED[kind])
    said = []
    for edge in chosen.sample(EDGES, len(EDGES)):
        path = tuple(edge.path.split("."))
        if edge.kind != kind or at(item, path) is None or chosen.random() < 0.5:
            continue
        values: Sequence[Any] = edge.refused if not edge.taken or chosen.random() < 0.06 else edge.taken
        if not edge.taken and chosen.random() < 0.95:
            continue
        value = chosen.choice(values)
        item = put(item, path, value)
        said.append(f"{edge.path}: {value!r:.40}")
    return Generated("mixture of " + ", ".join(said), item)
