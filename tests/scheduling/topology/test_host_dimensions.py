"""Loads on a fresh node that respect the sums may be bound in any order; what is typical is said exactly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations

from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.constraint import HostPort
from engine.model.pod import Pod
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.host_dimensions import HostDimensions, host_dimensions
from engine.scheduling.topology.neighbourhood import couplings
from engine.scheduling.topology.topology import Topology
from tests.scheduling.topology.drawn import LABELS, PORTS, SELECTORS
from tests.scheduling.topology.neighbours import HOSTNAME, matching, spread, term, tied

MANY = settings(max_examples=60, deadline=None)
WEB = matching(app="web")


@frozen
class Asked:
    """Kinds of pods, many of each, with their dimensions."""

    topology: Topology
    couplings: tuple[Coupling | None, ...]
    dimensions: HostDimensions

    def respects_sums(self, load: Sequence[int]) -> bool:
        """Whether the sums admit one node with these kinds of pods."""
        takes = self.dimensions.takes
        return all(sum(takes[kind][at] for kind in load) <= room for at, room in enumerate(self.dimensions.rooms))

    def may_be_bound(self, load: Sequence[int]) -> bool:
        """Whether they may be bound to a fresh node in this order."""
        node = self.topology.copy()
        node.join(0, {}, ())
        for kind in load:
            coupling = self.couplings[kind]
            if coupling is None:
                continue
            if not node.admitted(coupling, 0, 1):
                return False
            node.put(coupling, 0, 1)
        return True


def asked(kinds: Sequence[Pod], pods: Sequence[int], most: int = 12) -> Asked:
    renamed = [evolve(pod, key=evolve(pod.key, name=f"kind-{index}")) for index, pod in enumerate(kinds)]
    neighbourhood = couplings(renamed, (), ())
    topology = Topology(neighbourhood)
    of_kinds = tuple(neighbourhood.coupling_of(pod.key) for pod in renamed)
    for coupling in neighbourhood.couplings:
        topology.offer(coupling, [{}])
    return Asked(topology, of_kinds, host_dimensions(neighbourhood, of_kinds, pods, most))


def loads(kinds: int, most: int) -> list[tuple[int, ...]]:
    return [load for size in range(1, most + 1) for load in combinations_with_replacement(range(kinds), size)]


def is_exact(question: Asked, kinds: int, most: int = 4) -> bool:
    """Whether the sums admit a load exactly where every order of binding it goes through."""
    return all(
        question.respects_sums(load) is all(map(question.may_be_bound, set(permutations(load))))
        for load in loads(kinds, most)
    )


HOST_SPREADS = st.builds(spread, st.just(HOSTNAME), SELECTORS, st.integers(1, 3))
HOST_TERMS = st.builds(term, st.just(HOSTNAME), SELECTORS)


@st.composite
def _kinds(draw: st.DrawFn) -> Pod:
    trait = draw(st.sampled_from(["none", "spread", "apart", "ports", "near"]))
    return tied(
        "kind",
        draw(LABELS),
        spreads=[draw(HOST_SPREADS)] if trait == "spread" else (),
        apart=[draw(HOST_TERMS)] if trait == "apart" else (),
        near=[draw(HOST_TERMS)] if trait == "near" else (),
        ports=draw(st.lists(PORTS, min_size=1, max_size=2, unique=True)) if trait == "ports" else (),
    )


@MANY
@given(st.lists(_kinds(), min_size=1, max_size=4), st.integers(1, 40), st.integers(1, 12))
def test_a_load_that_respects_the_sums_may_be_bound_in_any_order(kinds: list[Pod], pods: int, most: int) -> None:
    question = asked(kinds, [pods] * len(kinds), most)
    assert len(question.dimensions.rooms) <= most
    for load in loads(len(kinds), 4):
        possible = all(load.count(kind) <= pods for kind in load)
        if possible and not question.dimensions.too_tangled.intersection(load) and question.respects_sums(load):
            assert all(map(question.may_be_bound, set(permutations(load))))


def test_pods_that_exclude_their_own_kind_take_a_room_of_one() -> None:
    away = [term(HOSTNAME, WEB)]
    kinds = [tied("a", {"app": "web"}, apart=away), tied("b", {"app": "web", "size": "big"}, apart=away), tied("c")]
    question = asked(kinds, [5, 5, 5])
    assert question.dimensions == HostDimensions(rooms=(1,), takes=((1,), (1,), (0,)), too_tangled=frozenset())
    assert is_exact(question, 3)


def test_a_spread_over_hostnames_is_a_room_of_its_skew() -> None:
    question = asked([tied("a", {"app": "web"}, spreads=[spread(HOSTNAME, WEB, 2)]), tied("b")], [5, 5])
    assert question.dimensions == HostDimensions(rooms=(2,), takes=((1,), (0,)), too_tangled=frozenset())
    assert is_exact(question, 2)


def test_host_ports_conflict_by_address() -> None:
    kinds = [
        tied("a", ports=[HostPort(80, ip="10.0.0.1")]),
        tied("b", ports=[HostPort(80, ip="10.0.0.2")]),
        tied("c", ports=[HostPort(80)]),
        tied("d", ports=[HostPort(80, "UDP")]),
    ]
    assert is_exact(asked(kinds, [5, 5, 5, 5]), 4)


def test_those_who_shun_others_that_exclude_themselves_share_nodes_freely() -> None:
    lonely = tied("a", {"app": "db"}, apart=[term(HOSTNAME, matching(app="db"))])
    shy = tied("b", {"app": "web"}, apart=[term(HOSTNAME, matching(app="db"))])
    assert is_exact(asked([lonely, shy], [3, 30]), 2)


def test_few_pods_against_many_are_placed_one_by_one_and_do_not_part_the_many() -> None:
    kinds = [tied("a", {"app": "web"}), tied("b", {"app": "web"}, spreads=[spread(HOSTNAME, WEB)])]
    question = asked(kinds, [1000, 10])
    assert question.dimensions.too_tangled == {1}
    assert question.respects_sums([0] * 100)


def test_many_pods_that_spread_take_the_few_that_they_count_along() -> None:
    kinds = [tied("a", {"app": "web"}), tied("b", {"app": "web"}, spreads=[spread(HOSTNAME, WEB)])]
    question = asked(kinds, [10, 1000])
    assert question.dimensions == HostDimensions(rooms=(1,), takes=((1,), (1,)), too_tangled=frozenset())


def test_the_strictest_of_several_skews_holds_for_all() -> None:
    kinds = [tied(f"{skew}", {"app": "web"}, spreads=[spread(HOSTNAME, WEB, skew)]) for skew in (1, 2)]
    question = asked(kinds, [5, 5])
    assert question.dimensions == HostDimensions(rooms=(1,), takes=((1,), (1,)), too_tangled=frozenset())
    assert not question.may_be_bound([1, 0])


def test_company_on_one_node_is_too_tangled() -> None:
    question = asked([tied("a", {"app": "web"}, near=[term(HOSTNAME, WEB)]), tied("b", {"app": "web"})], [5, 5])
    assert question.dimensions == HostDimensions(rooms=(), takes=((), ()), too_tangled=frozenset({0}))


def test_what_cannot_happen_with_so_few_pods_has_no_room() -> None:
    question = asked([tied("a", {"app": "web"}, apart=[term(HOSTNAME, WEB)])], [1])
    assert question.dimensions.rooms == ()


def test_beyond_the_most_dimensions_the_largest_groups_keep_theirs() -> None:
    kinds = [tied(name, {"app": name}, apart=[term(HOSTNAME, matching(app=name))]) for name in ("few", "more", "many")]
    question = asked(kinds, [2, 3, 9], most=2)
    assert question.dimensions.rooms == (1, 1)
    assert question.dimensions.too_tangled == {0}
