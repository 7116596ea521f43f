"""The pods of Karpenter's own benchmark, and pods of many sizes, for the benches of whole decisions.

A fifth each: plain pods; spread over zones; spread over hosts; each with its own kind in one zone; all of them apart on
hosts. One in seven labels tells kinds apart. A spread pod selects pods of a label drawn for itself, which need not be
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import LabelSelector, Operator, PodTerm, Requirement, TopologySpread
from engine.model.pod import Placing, Pod, PodKey
from engine.model.quantity import Resources

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NAMESPACE = "default"
SEED = 42

_MILLICORES = (100, 250, 500, 1000, 1500)
_MIB = (100, 256, 512, 1024, 2048, 4096)
_VALUES = "abcdefg"


def mixed_pods(count: int, seed: int = SEED) -> tuple[Pod, ...]:
    """The five parts one after another; what five does not divide goes to the plain ones."""
    random = Random(seed)
    share = count // len(_PARTS)
    parts = [part for part in _PARTS for _ in range(share)]
    parts += [_plain] * (count - len(parts))
    placings: dict[object, Placing] = {}
    pods = []
    for number, part in enumerate(parts):
        labels, ties = part(random)
        asked = evolve(ties, requests=requests(random.choice(_MILLICORES), random.choice(_MIB)))
        # Equal ones share their placing, as pods of one owner do.
        placing = placings.setdefault(asked.content, asked)
        pods.append(Pod(PodKey(NAMESPACE, f"mix-{number:05d}"), placing, NOON, labels=labels))
    return tuple(pods)


def sized_pods(count: int, sizes: int) -> tuple[Pod, ...]:
    """Plain pods of so many sizes, no two of which ask for the same, about as large as those of the mix."""
    placings = [
        Placing(requests(100 + 1400 * number // sizes, 100 + (number * 977) % sizes * 4000 // sizes))
        for number in range(sizes)
    ]
    return tuple(
        Pod(PodKey(NAMESPACE, f"sized-{number:05d}"), placings[number % sizes], NOON) for number in range(count)
    )


def requests(millicores: int, mib: int) -> Resources:
    """Of one pod."""
    return Resources.parse({"cpu": f"{millicores}m", "memory": f"{mib}Mi", "pods": 1})


# Labels, and what ties a pod to others; it asks for nothing so far.
_Part = Callable[[Random], tuple[dict[str, str], Placing]]
_NOTHING_ASKED = Resources({})


def _plain(random: Random) -> tuple[dict[str, str], Placing]:
    return {"my-label": random.choice(_VALUES)}, Placing(_NOTHING_ASKED)


def _spread_over(key: str) -> _Part:
    def part(random: Random) -> tuple[dict[str, str], Placing]:
        labels = {"my-label": random.choice(_VALUES)}
        spread = TopologySpread(key, max_skew=1, selector=_selecting("my-label", random.choice(_VALUES)))
        return labels, Placing(_NOTHING_ASKED, spreads=(spread,))

    return part


def _together_in_zone(random: Random) -> tuple[dict[str, str], Placing]:
    value = random.choice(_VALUES)
    term = PodTerm(keys.ZONE, _selecting("my-affinity", value), (NAMESPACE,))
    return {"my-affinity": value}, Placing(_NOTHING_ASKED, pod_affinity=(term,))


def _apart_on_hosts(_: Random) -> tuple[dict[str, str], Placing]:
    term = PodTerm(keys.HOSTNAME, _selecting("app", "nginx"), (NAMESPACE,))
    return {"app": "nginx"}, Placing(_NOTHING_ASKED, pod_anti_affinity=(term,))


def _selecting(label: str, value: str) -> LabelSelector:
    return (Requirement(label, Operator.IN, (value,)),)


_PARTS = (_plain, _spread_over(keys.ZONE), _spread_over(keys.HOSTNAME), _together_in_zone, _apart_on_hosts)
