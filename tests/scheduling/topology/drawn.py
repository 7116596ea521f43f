"""Random clusters whose pods are tied to each other in every way, small enough to be counted slowly."""

from __future__ import annotations

from attrs import evolve, frozen
from hypothesis import strategies as st

from engine.model.constraint import HostPort, LabelSelector, Operator, PodTerm, Requirement, TopologySpread
from engine.model.pod import Pod
from engine.model.workload import Namespace
from engine.scheduling.topology.neighbourhood import StandingNode
from tests.builders import taint, toleration
from tests.scheduling.topology.neighbours import HOSTNAME, ZONE, node, spread, tied

RACK = "rack"
KEYS = st.sampled_from([ZONE, ZONE, HOSTNAME, RACK])
NAMESPACES = (Namespace("one", {"team": "red"}), Namespace("two", {"team": "blue"}))
WORDS = st.sampled_from(["a", "b"])
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), WORDS, max_size=2)


@st.composite
def _requirements(draw: st.DrawFn, key: str) -> Requirement:
    operator = draw(st.sampled_from([Operator.IN, Operator.IN, Operator.NOT_IN, Operator.EXISTS]))
    values = () if operator is Operator.EXISTS else tuple(draw(st.lists(WORDS, min_size=1, max_size=2, unique=True)))
    return Requirement(key, operator, values)


SELECTORS: st.SearchStrategy[LabelSelector] = st.one_of(
    st.none(), st.tuples(), st.tuples(_requirements("app")), st.tuples(_requirements("app"), _requirements("tier"))
)
SPREADS: st.SearchStrategy[TopologySpread] = st.builds(
    spread,
    KEYS,
    SELECTORS,
    st.integers(1, 3),
    min_domains=st.sampled_from([None, None, 1, 2, 3]),
    honors_affinity=st.booleans(),
    honors_taints=st.booleans(),
    is_required=st.sampled_from([True, True, True, False]),
)
TERMS = st.builds(
    PodTerm,
    KEYS,
    SELECTORS,
    st.sampled_from([("one",), ("one", "two"), ()]),
    st.sampled_from([None, None, (), (Requirement("team", Operator.IN, ("red",)),)]),
)
PORTS = st.builds(HostPort, st.sampled_from([80, 81]), st.just("TCP"), st.sampled_from(["", "10.0.0.1", "10.0.0.2"]))


@st.composite
def pods(draw: st.DrawFn, name: str, *, bound: bool = False) -> Pod:
    kinds = draw(st.sets(st.sampled_from(["spread", "near", "apart", "ports"]), max_size=2))
    made = tied(
        name,
        draw(LABELS),
        spreads=draw(st.lists(SPREADS, min_size=1, max_size=2, unique_by=lambda each: each.key)) * ("spread" in kinds),
        near=draw(st.lists(TERMS, min_size=1, max_size=2)) * ("near" in kinds),
        apart=draw(st.lists(TERMS, min_size=1, max_size=2)) * ("apart" in kinds),
        ports=draw(st.lists(PORTS, min_size=1, max_size=2, unique=True)) * ("ports" in kinds),
        selector=draw(st.sampled_from([None, None, {"disk": "ssd"}])),
        namespace=draw(st.sampled_from(["one", "one", "two"])),
        tolerations=draw(st.sampled_from([(), (toleration("dedicated"),)])),
    )
    return evolve(made, deleting=True) if bound and draw(st.integers(0, 4)) == 0 else made


@st.composite
def nodes(draw: st.DrawFn, name: str, most_pods: int) -> StandingNode:
    labels = draw(
        st.fixed_dictionaries(
            {},
            optional={ZONE: st.sampled_from(["a", "b", ""]), RACK: st.sampled_from(["r", "s"]), "disk": st.just("ssd")},
        )
    )
    count = draw(st.integers(0, most_pods))
    held = [draw(pods(f"{name}-{index}", bound=True)) for index in range(count)]
    return node(name, None, *held, taints=draw(st.sampled_from([(), (), (taint("dedicated"),)])), **labels)


@st.composite
def standing_nodes(draw: st.DrawFn, name: str) -> StandingNode:
    """Now and then one that somebody took the hostname from."""
    made = draw(nodes(name, 2))
    if draw(st.integers(0, 5)):
        return made
    return evolve(made, labels={key: value for key, value in made.labels.items() if key != HOSTNAME})


@frozen
class Drawn:
    """``joined`` are the standing nodes that pods may go to; ``fresh`` are new ones. ``moves`` are tries: a pod, a
    place (joined, then fresh), how many at most."""

    standing: tuple[StandingNode, ...]
    joined: frozenset[str]
    fresh: tuple[StandingNode, ...]
    waiting: tuple[Pod, ...]
    offers: tuple[dict[str, str], ...]
    moves: tuple[tuple[int, int, int], ...]


@st.composite
def clusters(draw: st.DrawFn) -> Drawn:
    standing = tuple(draw(standing_nodes(f"node-{index}")) for index in range(draw(st.integers(0, 4))))
    fresh = tuple(draw(nodes(f"fresh-{index}", 0)) for index in range(draw(st.integers(1, 3))))
    joined = draw(st.sets(st.sampled_from([each.name for each in standing]))) if standing else set()
    waiting = tuple(draw(pods(f"pod-{index}")) for index in range(draw(st.integers(1, 5))))
    places = len(joined) + len(fresh)
    move = st.tuples(st.integers(0, len(waiting) - 1), st.integers(0, places - 1), st.integers(1, 3))
    combos = st.fixed_dictionaries({ZONE: st.sampled_from(["a", "c"])}, optional={RACK: st.just("r")})
    offers = tuple(draw(st.lists(combos, max_size=2)))
    moves = tuple(draw(st.lists(move, min_size=1, max_size=12)))
    return Drawn(standing, frozenset(joined), fresh, waiting, offers, moves)
