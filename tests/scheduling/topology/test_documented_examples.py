"""The examples of the Kubernetes documentation in numbers, and bug reports that are of this room."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.model.constraint import HostPort, Operator, PodTerm, Requirement
from engine.model.pod import Pod
from engine.model.workload import Namespace
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.neighbourhood import StandingNode, couplings
from engine.scheduling.topology.tally import Bar
from engine.scheduling.topology.topology import Topology
from tests.builders import taint
from tests.scheduling.topology.neighbours import HOSTNAME, ZONE, matching, node, spread, term, tied

FOO = matching(foo="bar")
WEB = matching(app="web")
STORE = matching(app="store")
NAMESPACES = (Namespace("default", {"team": "red"}), Namespace("other", {"team": "blue"}))


def foo(name: str) -> Pod:
    return tied(name, {"foo": "bar"})


# Two zones of two nodes: three matching pods on node1, node2 and node3; node4 has none.
TWO_AND_ONE = (
    node("node1", "zoneA", foo("p1")),
    node("node2", "zoneA", foo("p2")),
    node("node3", "zoneB", foo("p3")),
    node("node4", "zoneB"),
)


def admitted(pod: Pod, standing: Sequence[StandingNode], most: int = 1) -> list[int]:
    """How many such pods each of the nodes takes, asked one node at a time."""
    topology, coupling = known(pod, standing)
    return [topology.admitted(coupling, member, most) for member in range(len(standing))]


def known(pod: Pod, standing: Sequence[StandingNode]) -> tuple[Topology, Coupling]:
    neighbourhood = couplings([pod], standing, NAMESPACES)
    topology = Topology(neighbourhood)
    for member, each in enumerate(standing):
        topology.join(member, each.labels, each.taints, each.name)
    coupling = neighbourhood.coupling_of(pod.key)
    assert coupling is not None
    return topology, coupling


def test_one_spread_over_zones_leaves_the_zone_with_fewer() -> None:
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO)])
    assert admitted(pod, TWO_AND_ONE) == [0, 0, 1, 1]


def test_spreads_over_zones_and_hostnames_must_both_hold() -> None:
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO), spread(HOSTNAME, FOO)])
    assert admitted(pod, TWO_AND_ONE) == [0, 0, 0, 1]


def test_conflicting_spreads_leave_no_node() -> None:
    standing = (
        node("node1", "zoneA", foo("p1"), foo("p2")),
        node("node2", "zoneA", foo("p3")),
        node("node3", "zoneB", foo("p4"), foo("p5")),
    )
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO), spread(HOSTNAME, FOO)])
    assert admitted(pod, standing) == [0, 0, 0]
    relaxed = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO), spread(HOSTNAME, FOO, is_required=False)])
    assert admitted(relaxed, standing) == [0, 0, 1]


def test_zones_that_node_affinity_shuts_out_do_not_count() -> None:
    standing = (*TWO_AND_ONE, node("node5", "zoneC", zone_kind="edge"))
    honoring = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO)], selector={"kubernetes.io/hostname": "node4"})
    assert admitted(honoring, standing)[3] == 1
    pod = tied(
        "mypod",
        {"foo": "bar"},
        spreads=[spread(ZONE, FOO, honors_affinity=False)],
        selector={"kubernetes.io/hostname": "node4"},
    )
    assert admitted(pod, standing)[3] == 0


def test_tainted_nodes_are_domains_unless_the_policy_honors_taints() -> None:
    standing = (*TWO_AND_ONE, node("node5", "zoneC", taints=[taint("dedicated")]))
    ignoring = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO)])
    honoring = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO, honors_taints=True)])
    assert admitted(ignoring, standing)[2:4] == [0, 0]
    assert admitted(honoring, standing)[2:4] == [1, 1]


def test_pods_that_count_on_different_nodes_count_apart() -> None:
    standing = (
        node("node1", "zoneA", foo("p1")),
        node("node2", "zoneB", disk="ssd"),
        node("node3", "zoneC", disk="ssd", taints=[taint("dedicated")]),
    )
    over_all, over_untainted = [spread(ZONE, FOO)], [spread(ZONE, FOO, honors_taints=True)]
    fast = {"disk": "ssd"}
    pods = [
        tied("all", {"foo": "bar"}, spreads=over_all),
        tied("untainted", {"foo": "bar"}, spreads=over_untainted),
        tied("fast", {"foo": "bar"}, spreads=over_all, selector=fast),
        tied("fast-untainted", {"foo": "bar"}, spreads=over_untainted, selector=fast),
    ]
    neighbourhood = couplings(pods, standing, ())
    topology = Topology(neighbourhood)
    for member, each in enumerate(standing):
        topology.join(member, each.labels, each.taints, each.name)
    tie = {pod.key.name: neighbourhood.coupling_of(pod.key) for pod in pods}
    coupled = {name: coupling for name, coupling in tie.items() if coupling is not None}
    topology.put(coupled["all"], 1, 1)
    # One pod in A and one in B; C has none, B is alone for the last.
    room = {name: topology.admitted(coupling, 1, 5) for name, coupling in coupled.items()}
    assert room == {"all": 0, "untainted": 1, "fast": 0, "fast-untainted": 5}


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
@pytest.mark.parametrize(("least", "taken"), [(None, 5), (1, 5), (2, 2)])
def test_with_too_few_domains_each_takes_its_skew_only(key: str, least: int | None, taken: int) -> None:
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(key, FOO, 2, min_domains=least)])
    assert admitted(pod, [node("node1", "zoneA")], most=5) == [taken]


def test_a_node_without_one_of_the_keys_is_no_domain_of_the_others() -> None:
    standing = (node("node1", "zoneA", foo("p1"), rack="r1"), node("node2", "zoneB"))
    both = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO), spread("rack", FOO)])
    assert admitted(both, standing) == [1, 0]


def test_an_empty_zone_is_no_domain() -> None:
    standing = (node("node0", ""), node("node1", "1"), node("node2", "2"))
    topology, coupling = known(tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO)]), standing)
    taken = {0: 0, 1: 0, 2: 0}
    for _ in range(4):
        member = next(each for each in (0, 1, 2) if topology.admitted(coupling, each, 1))
        topology.put(coupling, member, 1)
        taken[member] += 1
    assert taken == {0: 0, 1: 2, 2: 2}


def test_a_web_server_goes_where_the_store_is_and_no_other_web_server() -> None:
    web = tied("web", {"app": "web"}, near=[term(HOSTNAME, STORE)], apart=[term(HOSTNAME, WEB)])
    standing = (
        node("node1", "a", tied("s1", {"app": "store"})),
        node("node2", "a", tied("s2", {"app": "store"}), tied("w1", {"app": "web"})),
        node("node3", "a"),
    )
    assert admitted(web, standing, most=2) == [1, 0, 0]


def test_stores_exclude_each_other_on_a_node() -> None:
    store = tied("store", {"app": "store"}, apart=[term(HOSTNAME, STORE)])
    assert admitted(store, [node("node1", "a", tied("s1", {"app": "store"})), node("node2", "a")], most=3) == [0, 1]


def test_a_placed_pods_anti_affinity_bars_a_pod_that_has_none() -> None:
    shy = tied("shy", {"app": "db"}, apart=[term(ZONE, WEB)])
    standing = (node("node1", "a", shy), node("node2", "a"), node("node3", "b"))
    assert admitted(tied("web", {"app": "web"}), standing) == [0, 0, 1]


def test_the_first_of_a_group_goes_anywhere_and_the_others_follow() -> None:
    pod = tied("web", {"app": "web"}, near=[term(ZONE, WEB)])
    standing = (node("node1", "a"), node("node2", "b"), node("node3", None))
    topology, coupling = known(pod, standing)
    assert [topology.admitted(coupling, member, 9) for member in range(3)] == [9, 9, 0]
    topology.put(coupling, 1, 1)
    assert [topology.admitted(coupling, member, 9) for member in range(3)] == [0, 9, 0]


def test_a_pod_that_does_not_match_its_own_term_waits_for_company() -> None:
    pod = tied("web", {"app": "web"}, near=[term(ZONE, STORE)])
    assert admitted(pod, [node("node1", "a")]) == [0]


def test_company_must_match_all_terms_at_once() -> None:
    near = [term(ZONE, WEB), term(ZONE, matching(tier="front"))]
    pod = tied("mine", {"app": "web"}, near=near)
    apart = node("node1", "a", tied("p1", {"app": "web"}), tied("p2", {"tier": "front"}))
    together = node("node2", "b", tied("p3", {"app": "web", "tier": "front"}))
    assert admitted(pod, [apart, together]) == [0, 1]


@pytest.mark.parametrize(
    ("far", "free"),
    [
        (PodTerm(ZONE, WEB, ("default",)), 1),
        (PodTerm(ZONE, WEB, ("other",)), 0),
        (PodTerm(ZONE, WEB, (), ()), 0),
        (PodTerm(ZONE, WEB, (), (Requirement("team", Operator.IN, ("blue",)),)), 0),
        (PodTerm(ZONE, WEB, (), (Requirement("team", Operator.IN, ("green",)),)), 1),
    ],
)
def test_terms_look_at_the_namespaces_that_they_name_or_select(far: PodTerm, free: int) -> None:
    standing = [node("node1", "a", tied("p1", {"app": "web"}, namespace="other"))]
    assert admitted(tied("mine", {"app": "db"}, apart=[far]), standing) == [free]


def test_a_pod_on_its_way_out_counts_for_anti_affinity_but_for_no_spread() -> None:
    standing = (node("node1", "a", tied("p1", {"app": "web"}, deleting=True)), node("node2", "b"))
    assert admitted(tied("mine", {"app": "web"}, spreads=[spread(ZONE, WEB)]), standing) == [1, 1]
    assert admitted(tied("mine", {"app": "web"}, apart=[term(ZONE, WEB)]), standing) == [0, 1]


def test_a_host_port_is_taken_once_on_each_node() -> None:
    standing = (node("node1", "a", tied("p1", ports=[HostPort(80, ip="10.0.0.1")])), node("node2", "a"))
    assert admitted(tied("mine", ports=[HostPort(80)]), standing, most=3) == [0, 1]
    assert admitted(tied("mine", ports=[HostPort(80, ip="10.0.0.2")]), standing, most=3) == [1, 1]


def test_ports_of_daemons_to_come_are_taken() -> None:
    topology, coupling = known(tied("mine", ports=[HostPort(80)]), [node("node1", "a")])
    topology.occupy(0, [HostPort(80)])
    assert topology.admitted(coupling, 0, 1) == 0
    assert topology.why_not(coupling, 0) == Bar(HostPort(80), "")


def test_a_reason_names_the_constraint_with_its_numbers() -> None:
    constraint = spread(ZONE, FOO)
    topology, coupling = known(tied("mypod", {"foo": "bar"}, spreads=[constraint]), TWO_AND_ONE)
    assert topology.why_not(coupling, 0) == Bar(constraint, ZONE, here=2, least=1)
    assert topology.why_not(coupling, 3) is None
    shy = term(ZONE, WEB)
    standing = (node("node1", "a", tied("shy", apart=[shy])),)
    topology, coupling = known(tied("web", {"app": "web"}), standing)
    assert topology.why_not(coupling, 0) == Bar(shy, ZONE, here=1, by_others=True)


def test_a_node_that_never_joins_counts_all_the_same() -> None:
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO)])
    neighbourhood = couplings([pod], [node("cordoned", "zoneA"), node("node3", "zoneB", foo("p3"))], ())
    topology, coupling = Topology(neighbourhood), neighbourhood.coupling_of(pod.key)
    assert coupling is not None
    topology.join(0, {HOSTNAME: "node3", ZONE: "zoneB"}, (), "node3")
    assert topology.admitted(coupling, 0, 1) == 0


def test_a_node_moves_its_pods_to_the_labels_that_it_joins_with() -> None:
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(ZONE, FOO)])
    neighbourhood = couplings([pod], [node("node1", None, foo("p1")), node("node2", "zoneB")], ())
    topology, coupling = Topology(neighbourhood), neighbourhood.coupling_of(pod.key)
    assert coupling is not None
    topology.join(0, {HOSTNAME: "node1", ZONE: "zoneA"}, (), "node1")
    topology.join(1, {HOSTNAME: "node2", ZONE: "zoneB"}, (), "node2")
    assert [topology.admitted(coupling, member, 1) for member in (0, 1)] == [0, 1]


def test_a_node_that_joins_with_another_zone_leaves_nothing_in_the_old_one() -> None:
    follower = tied("follower", near=[term(ZONE, FOO)])
    even = tied("even", {"foo": "bar"}, spreads=[spread(ZONE, FOO)])
    neighbourhood = couplings([follower, even], [node("node1", "old", foo("p1"))], ())
    following, spreading = (neighbourhood.coupling_of(pod.key) for pod in (follower, even))
    assert following is not None
    assert spreading is not None
    topology = Topology(neighbourhood)
    topology.join(0, {ZONE: "new"}, (), "node1")
    assert topology.admitted(spreading, 0, 7) == 7
    topology.join(1, {ZONE: "old"}, ())
    assert [topology.admitted(following, member, 1) for member in (0, 1)] == [1, 0]


def test_a_node_that_joins_without_its_hostname_keeps_it() -> None:
    pod = tied("mypod", {"foo": "bar"}, spreads=[spread(HOSTNAME, FOO)], near=[term(HOSTNAME, FOO)])
    neighbourhood = couplings([pod], [node("node1", "zoneA", foo("p1")), node("node2", "zoneB")], ())
    topology, coupling = Topology(neighbourhood), neighbourhood.coupling_of(pod.key)
    assert coupling is not None
    topology.join(0, {ZONE: "zoneA"}, (), "node1")
    # A second node of the same hostname is the same domain.
    topology.join(1, {HOSTNAME: "node1"}, ())
    assert topology.why_not(coupling, 1) == Bar(coupling.spreads[0].constraint, HOSTNAME, here=1, least=0)


def test_where_nobody_is_tied_nobody_has_a_coupling() -> None:
    pods = [foo("p1"), tied("soft", {"foo": "bar"}, spreads=[spread(ZONE, FOO, is_required=False)])]
    neighbourhood = couplings(pods, TWO_AND_ONE, NAMESPACES)
    assert [neighbourhood.coupling_of(pod.key) for pod in pods] == [None, None]
    assert neighbourhood.bound == ()


def test_a_pod_that_others_count_is_coupled_and_one_that_nobody_counts_is_not() -> None:
    counting = tied("counting", {"foo": "bar"}, spreads=[spread(ZONE, FOO)])
    counted, other = foo("counted"), tied("other", {"foo": "else"})
    neighbourhood = couplings([counting, counted, other], (), ())
    coupling = neighbourhood.coupling_of(counted.key)
    assert coupling is not None
    assert coupling.is_free
    assert neighbourhood.coupling_of(other.key) is None
