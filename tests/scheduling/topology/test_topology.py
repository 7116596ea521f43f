"""Counts that answer at once say what counting anew from all placed pods says."""

from __future__ import annotations

from hypothesis import given, settings

from engine.model.constraint import HostPort
from engine.model.pod import Pod
from engine.scheduling.topology.neighbourhood import Neighbourhood, StandingNode, couplings
from engine.scheduling.topology.topology import Topology
from tests.scheduling.topology.drawn import NAMESPACES, Drawn, clusters
from tests.scheduling.topology.neighbours import HOSTNAME, ZONE, matching, node, spread, term, tied
from tests.scheduling.topology.slow_rules import Place, Scene, how_many, suits

MANY = settings(max_examples=60, deadline=None)


class Told:
    """A drawn cluster, told to the topology and to the slow rules alike."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.neighbourhood: Neighbourhood = couplings(drawn.waiting, drawn.standing, NAMESPACES)
        self.topology = Topology(self.neighbourhood)
        everywhere = (*drawn.standing, *drawn.fresh)
        self.members = [index for index, each in enumerate(drawn.standing) if each.name in drawn.joined]
        self.members += range(len(drawn.standing), len(everywhere))
        for member in self.members:
            each = everywhere[member]
            name = each.name if member < len(drawn.standing) else None
            self.topology.join(member, each.labels, each.taints, name)
        self.scene = Scene(
            places=tuple(Place(each.labels, each.taints) for each in everywhere),
            pods=tuple((pod, index) for index, each in enumerate(everywhere) for pod in each.pods),
            namespaces={each.name: each.labels for each in NAMESPACES},
        )
        for pod in drawn.waiting:
            coupling = self.neighbourhood.coupling_of(pod.key)
            if coupling is not None:
                self.topology.offer(coupling, drawn.offers)

    def admitted(self, pod: Pod, member: int, most: int) -> int:
        coupling = self.neighbourhood.coupling_of(pod.key)
        return most if coupling is None else self.topology.admitted(coupling, member, most)

    def put(self, pod: Pod, member: int, count: int) -> None:
        coupling = self.neighbourhood.coupling_of(pod.key)
        if coupling is not None:
            self.topology.put(coupling, member, count)
        for _ in range(count):
            self.scene = self.scene.with_pod(pod, member)


@MANY
@given(clusters())
def test_as_many_pods_are_admitted_as_the_documented_rules_allow_one_after_another(drawn: Drawn) -> None:
    told = Told(drawn)
    for which, where, most in drawn.moves:
        pod, member = drawn.waiting[which], told.members[where]
        if not suits(pod, told.scene.places[member]):
            continue
        admitted = told.admitted(pod, member, most)
        assert admitted == how_many(told.scene, pod, member, most, drawn.offers)
        told.put(pod, member, admitted)


@MANY
@given(clusters())
def test_a_reason_is_given_exactly_where_no_pod_is_admitted(drawn: Drawn) -> None:
    told = Told(drawn)
    for which, where, most in drawn.moves:
        pod, member = drawn.waiting[which], told.members[where]
        coupling = told.neighbourhood.coupling_of(pod.key)
        if coupling is None or not suits(pod, told.scene.places[member]):
            continue
        admitted = told.topology.admitted(coupling, member, most)
        assert (told.topology.why_not(coupling, member) is None) is bool(admitted)
        told.put(pod, member, admitted)


@MANY
@given(clusters())
def test_the_order_of_pods_nodes_and_namespaces_changes_nothing(drawn: Drawn) -> None:
    there = couplings(drawn.waiting, drawn.standing, NAMESPACES)
    back = couplings(drawn.waiting[::-1], drawn.standing[::-1], NAMESPACES[::-1])
    one, other = Topology(there), Topology(back)
    for topology in (one, other):
        for member, each in enumerate(drawn.standing):
            topology.join(member, each.labels, each.taints, each.name)
    for pod in drawn.waiting:
        mine, yours = there.coupling_of(pod.key), back.coupling_of(pod.key)
        assert (mine is None) is (yours is None)
        if mine is None or yours is None:
            continue
        assert mine.order == yours.order
        for member in range(len(drawn.standing)):
            admitted = one.admitted(mine, member, 3)
            assert other.admitted(yours, member, 3) == admitted
            one.put(mine, member, admitted)
            other.put(yours, member, admitted)


@MANY
@given(clusters())
def test_what_is_put_into_a_copy_is_not_in_the_original(drawn: Drawn) -> None:
    told = Told(drawn)
    tied = [(each, told.neighbourhood.coupling_of(each.key)) for each in drawn.waiting]
    asked = [(coupling, member) for _, coupling in tied if coupling is not None for member in told.members]
    before = [told.topology.admitted(coupling, member, 3) for coupling, member in asked]
    twin = told.topology.copy()
    twin.join(99, {}, ())
    for coupling, member in asked:
        twin.put(coupling, member, twin.admitted(coupling, member, 2))
        twin.offer(coupling, [{"rack": "t", "topology.kubernetes.io/zone": "d"}])
    assert [told.topology.admitted(coupling, member, 3) for coupling, member in asked] == before


def test_a_copy_has_its_own_nodes_ports_and_names() -> None:
    pod = tied("mine", {"app": "web"}, near=[term(ZONE, matching(app="web"))], ports=[HostPort(80)])
    neighbourhood = couplings([pod], [node("node1", "a", tied("web", {"app": "web"}))], ())
    coupling = neighbourhood.coupling_of(pod.key)
    assert coupling is not None
    topology = Topology(neighbourhood)
    twin = topology.copy()
    twin.join(0, {ZONE: "b"}, (), "node1")
    topology.join(0, {ZONE: "a"}, (), "node1")
    topology.join(1, {ZONE: "a"}, ())
    twin.join(1, {ZONE: "b"}, ())
    topology.join(2, {ZONE: "b"}, ())
    twin.join(2, {ZONE: "a"}, ())
    twin.put(coupling, 1, 1)
    assert [topology.admitted(coupling, member, 1) for member in range(3)] == [1, 1, 0]
    assert [twin.admitted(coupling, member, 1) for member in range(3)] == [1, 0, 0]


def test_a_standing_node_without_a_hostname_takes_none_that_spread_over_hostnames() -> None:
    web = matching(app="web")
    pods = [
        tied("even", {"app": "web"}, spreads=[spread(HOSTNAME, web)]),
        tied("company", {"app": "web"}, near=[term(HOSTNAME, web)]),
        tied("alone", {"app": "web"}, apart=[term(HOSTNAME, web)]),
    ]
    bare = StandingNode("bare", {ZONE: "a"}, (), (tied("web", {"app": "web"}),))
    neighbourhood = couplings(pods, [bare], ())
    topology = Topology(neighbourhood)
    topology.join(0, {ZONE: "a"}, (), "bare")
    topology.join(1, {ZONE: "a"}, (), None)
    even, company, alone = (neighbourhood.coupling_of(each.key) for each in pods)
    assert even is not None
    assert company is not None
    assert alone is not None
    assert [topology.admitted(each, 0, 3) for each in (even, company, alone)] == [0, 0, 3], "no other shares its host"
    assert [topology.admitted(each, 1, 3) for each in (even, alone)] == [3, 1], "one to come gets a hostname"
    why = topology.why_not(even, 0)
    assert why is not None
    assert why.is_label_missing
