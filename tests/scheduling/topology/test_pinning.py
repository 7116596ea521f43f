"""Pods are handed out over zones as their constraints demand, and cheaply where they demand nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.constraint import LabelSelector
from engine.model.pod import Pod
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.neighbourhood import StandingNode, couplings
from engine.scheduling.topology.pinning import is_pinned, pins
from engine.scheduling.topology.topology import Topology
from tests.scheduling.topology.drawn import NAMESPACES, RACK, Drawn, clusters
from tests.scheduling.topology.neighbours import HOSTNAME, ZONE, matching, node, spread, term, tied
from tests.scheduling.topology.slow_rules import Place, Scene, allows

WEB = matching(app="web")


def zones(*names: str) -> list[Mapping[str, str]]:
    return [{ZONE: name} for name in names]


class Asked:
    def __init__(self, pods: Sequence[Pod], standing: Sequence[StandingNode] = ()) -> None:
        self._neighbourhood = couplings(pods, standing, ())
        self._topology = Topology(self._neighbourhood)

    def coupling_of(self, pod: Pod) -> Coupling:
        coupling = self._neighbourhood.coupling_of(pod.key)
        assert coupling is not None
        return coupling

    def pins(
        self, pod: Pod, pods: int, combos: Sequence[Mapping[str, str]], costs: Sequence[int]
    ) -> tuple[list[tuple[int, int]], int]:
        return pins(self._topology, self.coupling_of(pod), pods, combos, costs)


def spreading(name: str = "p", selector: LabelSelector = WEB, max_skew: int = 1) -> Pod:
    return tied(name, {"app": "web"}, spreads=[spread(ZONE, selector, max_skew)])


def test_a_spread_takes_all_zones_alike_and_the_cheapest_with_the_rest() -> None:
    assert Asked([spreading()]).pins(spreading(), 7, zones("a", "b", "c"), [3, 1, 2]) == ([(0, 2), (1, 3), (2, 2)], 0)


def test_a_spread_is_even_although_its_skew_would_let_the_cheapest_have_more() -> None:
    pod = spreading(max_skew=3)
    assert Asked([pod]).pins(pod, 4, zones("a", "b"), [1, 2]) == ([(0, 2), (1, 2)], 0)


def test_a_zone_that_none_of_the_pods_offerings_has_is_no_domain() -> None:
    assert Asked([spreading()]).pins(spreading(), 6, zones("a", "b"), [1, 1]) == ([(0, 3), (1, 3)], 0)


def test_a_zone_whose_nodes_are_full_holds_the_others_back() -> None:
    pod = spreading(max_skew=2)
    asked = Asked([pod], [node("n", "c")])
    assert asked.pins(pod, 9, zones("a", "b"), [1, 1]) == ([(0, 2), (1, 2)], 5)


def test_pods_on_standing_nodes_count() -> None:
    bound = [tied(f"b{index}", {"app": "web"}) for index in range(3)]
    assert Asked([spreading()], [node("n", "a", *bound)]).pins(spreading(), 5, zones("a", "b"), [1, 9]) == (
        [(0, 1), (1, 4)],
        0,
    )


def test_a_group_begins_where_it_is_cheapest_and_stays_together() -> None:
    small = tied("small", {"app": "web"}, near=[term(ZONE, WEB)])
    large = tied("large", {"app": "web", "size": "l"}, near=[term(ZONE, WEB)])
    asked = Asked([small, large])
    assert asked.pins(small, 50, zones("a", "b"), [2, 1]) == ([(1, 50)], 0)
    assert asked.pins(large, 5, zones("a", "b"), [1, 2]) == ([(1, 5)], 0)


def test_a_group_goes_where_its_company_is() -> None:
    pod = tied("p", {"app": "web"}, near=[term(ZONE, WEB)])
    assert Asked([pod], [node("n", "a", tied("b", {"app": "web"}))]).pins(pod, 3, zones("a", "b"), [9, 1]) == (
        [(0, 3)],
        0,
    )


def test_anti_affinity_over_zones_leaves_one_pod_in_each() -> None:
    pod = tied("p", {"app": "web"}, apart=[term(ZONE, WEB)])
    assert Asked([pod]).pins(pod, 5, zones("a", "b", "c"), [1, 1, 1]) == ([(0, 1), (1, 1), (2, 1)], 2)


def test_the_anti_affinity_of_placed_pods_shuts_their_zone() -> None:
    pod = tied("p", {"app": "web"})
    asked = Asked([pod], [node("n", "a", tied("shy", apart=[term(ZONE, WEB)]))])
    assert is_pinned(asked.coupling_of(pod)) == {ZONE}
    assert asked.pins(pod, 4, zones("a", "b"), [1, 2]) == ([(1, 4)], 0)


def test_two_keys_are_spread_over_together() -> None:
    pod = tied("p", {"app": "web"}, spreads=[spread(ZONE, WEB), spread(RACK, WEB)])
    combos = [{ZONE: zone, RACK: rack} for zone in ("a", "b") for rack in ("r", "s")]
    pinned, left = Asked([pod]).pins(pod, 8, combos, [1, 1, 1, 1])
    assert left == 0
    for key in (ZONE, RACK):
        counts = {
            value: sum(count for at, count in pinned if combos[at][key] == value) for value in ("a", "b", "r", "s")
        }
        assert {count for count in counts.values() if count} == {4}


def test_what_happens_on_one_host_needs_no_pin() -> None:
    pod = tied("p", {"app": "web"}, apart=[term(HOSTNAME, WEB)], spreads=[spread(HOSTNAME, WEB)])
    assert is_pinned(Asked([pod]).coupling_of(pod)) == frozenset()
    assert is_pinned(None) == frozenset()


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(1, 6))
def test_each_pin_is_allowed_by_the_documented_rules_when_it_is_made(drawn: Drawn, pods: int) -> None:
    combos = [{ZONE: "a", RACK: "r"}, {ZONE: "b", RACK: "s"}, {ZONE: "c", RACK: "r"}]
    neighbourhood = couplings(drawn.waiting, drawn.standing, NAMESPACES)
    topology = Topology(neighbourhood)
    scene = Scene(
        places=tuple(Place(each.labels, each.taints) for each in drawn.standing),
        pods=tuple((pod, index) for index, each in enumerate(drawn.standing) for pod in each.pods),
        namespaces={each.name: each.labels for each in NAMESPACES},
    )
    for pod in drawn.waiting:
        coupling = neighbourhood.coupling_of(pod.key)
        if coupling is None or any(term.key == HOSTNAME for term in pod.placing.pod_affinity):
            continue
        for _ in range(pods):
            pinned, _ = pins(topology, coupling, 1, combos, [1, 2, 3])
            for index, _ in pinned:
                fresh = Place({HOSTNAME: f"new-{len(scene.places)}", "disk": "ssd", **combos[index]})
                scene = Scene((*scene.places, fresh), scene.pods, scene.namespaces)
                assert allows(scene, pod, len(scene.places) - 1, combos)
                scene = scene.with_pod(pod, len(scene.places) - 1)


def test_pods_that_spreads_of_others_count_are_left_even() -> None:
    """Whoever is bound first then finds the spread as it was planned."""
    counted = tied("plain", {"app": "web"})
    spread_by_others = tied("shy", {"app": "db"}, spreads=[spread(ZONE, WEB)])
    asked = Asked([counted, spread_by_others])
    assert is_pinned(asked.coupling_of(counted)) == {ZONE}
    assert asked.pins(counted, 7, zones("a", "b", "c"), [3, 1, 2]) == ([(0, 2), (1, 3), (2, 2)], 0)


def test_pods_that_only_their_own_spread_counts_bind_nobody_else() -> None:
    counted, spreading_too = tied("plain", {"app": "web"}), spreading()
    assert not is_pinned(Asked([counted, spreading_too]).coupling_of(counted))
