"""What a pod asks of the pods around it, of nodes by preference and of its node's ports, as Kubernetes writes it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.constraint import (
    HostPort,
    Operator,
    PodTerm,
    PreferredNodeTerm,
    Requirement,
    TopologySpread,
)
from engine.model.pod import Placing
from engine.observe.kubernetes import decode_pods
from tests.observe.kubernetes_objects import container, expression, pod_object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP_IS_WEB = Requirement("app", Operator.IN, ("web",))
WEB = {"matchLabels": {"app": "web"}}
SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
TERM = {"topologyKey": "zone", "labelSelector": WEB}


def placing(spec: dict[str, Any], **labels: str) -> Placing:
    (pod,), problems = decode_pods([pod_object(spec, namespace="shop", labels=labels)])
    assert problems == ()
    return pod.placing


def told(spec: dict[str, Any]) -> str:
    _, (problem,) = decode_pods([pod_object(spec)])
    return problem.what


def spread(**labels_and_more: Any) -> TopologySpread:
    labels = labels_and_more.pop("labels", {})
    (read,) = placing({"topologySpreadConstraints": [{**SPREAD, **labels_and_more}]}, **labels).spreads
    return read


def term(labels: dict[str, str] | None = None, **more: Any) -> PodTerm:
    asked = {"affinity": {"podAntiAffinity": {REQUIRED: [{**TERM, **more}]}}}
    (read,) = placing(asked, **(labels or {})).pod_anti_affinity
    return read


# --- topology spread


def test_a_spread_constraint_is_read_with_kubernetes_defaults() -> None:
    assert spread() == TopologySpread(
        "zone", 1, (APP_IS_WEB,), is_required=True, min_domains=None, honors_affinity=True, honors_taints=False
    )


def test_a_spread_constraint_is_read_whole() -> None:
    read = spread(
        maxSkew=3,
        minDomains=4,
        whenUnsatisfiable="ScheduleAnyway",
        nodeAffinityPolicy="Ignore",
        nodeTaintsPolicy="Honor",
        topologyKey="rack",
    )

    assert read == TopologySpread("rack", 3, (APP_IS_WEB,), False, 4, honors_affinity=False, honors_taints=True)


def test_every_constraint_of_a_pod_is_read_in_its_order() -> None:
    both = [SPREAD, {**SPREAD, "topologyKey": "kubernetes.io/hostname", "maxSkew": 2}]

    read = placing({"topologySpreadConstraints": both}).spreads

    assert [(each.key, each.max_skew) for each in read] == [("zone", 1), ("kubernetes.io/hostname", 2)]


def test_a_selector_that_is_absent_selects_nothing_and_an_empty_one_everything() -> None:
    assert spread(labelSelector=None).selector is None
    assert spread(labelSelector={}).selector == ()
    assert term(labelSelector=None).selector is None
    assert term(labelSelector={}).selector == ()


def test_label_keys_to_match_add_the_pods_own_value_where_it_has_the_label() -> None:
    labels = {"app": "web", "pod-template-hash": "7d9c"}

    assert spread(labels=labels, matchLabelKeys=["pod-template-hash", "absent"]).selector == (
        APP_IS_WEB,
        Requirement("pod-template-hash", Operator.IN, ("7d9c",)),
    )


def test_label_keys_that_the_api_server_has_merged_already_are_not_merged_again() -> None:
    merged = {**WEB, "matchExpressions": [expression("pod-template-hash", "In", "made-with")]}
    labels = {"pod-template-hash": "changed-since"}
    expected = (APP_IS_WEB, Requirement("pod-template-hash", Operator.IN, ("made-with",)))

    assert spread(labels=labels, labelSelector=merged, matchLabelKeys=["pod-template-hash"]).selector == expected
    assert term(labels, labelSelector=merged, matchLabelKeys=["pod-template-hash"]).selector == expected


def test_label_keys_to_match_select_nothing_where_there_is_no_selector() -> None:
    assert spread(labels={"app": "web"}, labelSelector=None, matchLabelKeys=["app"]).selector is None


def test_selectors_that_say_the_same_are_equal_however_they_are_written() -> None:
    one = {"matchLabels": {"tier": "a", "app": "web"}, "matchExpressions": [expression("app", "In", "web")]}
    other = {"matchExpressions": [expression("tier", "In", "a"), expression("app", "In", "web")]}

    assert spread(labelSelector=one) == spread(labelSelector=other)


# --- affinity to pods


def test_pod_affinity_and_anti_affinity_are_read_required_and_preferred() -> None:
    weighted = {"weight": 7, "podAffinityTerm": TERM}
    hostname = {**TERM, "topologyKey": "kubernetes.io/hostname"}
    read = placing(
        {
            "affinity": {
                "podAffinity": {REQUIRED: [TERM], PREFERRED: [weighted]},
                "podAntiAffinity": {REQUIRED: [hostname, TERM], PREFERRED: [{**weighted, "weight": 100}]},
            }
        }
    )

    own = PodTerm("zone", (APP_IS_WEB,), namespaces=("shop",))
    assert read.pod_affinity == (own,)
    assert read.pod_anti_affinity == (PodTerm("kubernetes.io/hostname", (APP_IS_WEB,), namespaces=("shop",)), own)
    assert read.preferred_pod_affinity == (PodTerm("zone", (APP_IS_WEB,), ("shop",), weight=7),)
    assert read.preferred_pod_anti_affinity == (PodTerm("zone", (APP_IS_WEB,), ("shop",), weight=100),)


@pytest.mark.parametrize(
    ("more", "namespaces", "selector"),
    [
        pytest.param({}, ("shop",), None, id="neither means its own"),
        pytest.param({"namespaces": [], "namespaceSelector": None}, ("shop",), None, id="empty is as absent"),
        pytest.param({"namespaces": ["b", "a", "b"]}, ("a", "b"), None, id="by name, its own not among them"),
        pytest.param({"namespaceSelector": {}}, (), (), id="every namespace"),
        pytest.param({"namespaceSelector": WEB}, (), (APP_IS_WEB,), id="by labels"),
        pytest.param({"namespaces": ["a"], "namespaceSelector": WEB}, ("a",), (APP_IS_WEB,), id="both together"),
    ],
)
def test_a_term_looks_at_the_namespaces_that_it_names(
    more: dict[str, Any], namespaces: tuple[str, ...], selector: Any
) -> None:
    read = term(**more)

    assert (read.namespaces, read.namespace_selector) == (namespaces, selector)


def test_label_keys_not_to_match_exclude_the_pods_own_value() -> None:
    labels = {"tenant": "a", "version": "2"}

    assert term(labels, matchLabelKeys=["version"], mismatchLabelKeys=["tenant", "absent"]).selector == (
        APP_IS_WEB,
        Requirement("tenant", Operator.NOT_IN, ("a",)),
        Requirement("version", Operator.IN, ("2",)),
    )


# --- preferred nodes


def test_preferred_node_terms_are_read_with_their_weights() -> None:
    terms = [
        {"weight": 1, "preference": {"matchExpressions": [expression("zone", "In", "a"), expression("gpu", "Exists")]}},
        {"weight": 100, "preference": {"matchExpressions": [expression("cores", "Gt", "7")]}},
    ]

    assert placing({"affinity": {"nodeAffinity": {PREFERRED: terms}}}).preferred_terms == (
        PreferredNodeTerm(1, (Requirement("zone", Operator.IN, ("a",)), Requirement("gpu", Operator.EXISTS))),
        PreferredNodeTerm(100, (Requirement("cores", Operator.GT, ("7",)),)),
    )


@pytest.mark.parametrize(
    "preference",
    [
        {},
        None,
        {"matchFields": [expression("metadata.name", "In", "n")]},
        {"matchFields": [expression("metadata.name", "In", "n")], "matchExpressions": [expression("gpu", "Exists")]},
    ],
)
def test_a_preference_that_no_new_node_can_meet_prefers_nothing(preference: Any) -> None:
    terms = [{"weight": 5, "preference": preference}]

    assert placing({"affinity": {"nodeAffinity": {PREFERRED: terms}}}).preferred_terms == ()


# --- host ports


def with_ports(*ports: dict[str, Any], **spec: Any) -> tuple[HostPort, ...]:
    return placing({"containers": [{**container(cpu="1"), "ports": [*ports]}], **spec}).host_ports


def test_host_ports_of_containers_init_containers_and_sidecars_count() -> None:
    init = [
        {**container("init"), "ports": [{"hostPort": 53, "protocol": "UDP"}]},
        {**container("sidecar", restart="Always"), "ports": [{"hostPort": 15021}]},
    ]

    assert with_ports({"containerPort": 8080, "hostPort": 80}, initContainers=init) == (
        HostPort(53, "UDP"),
        HostPort(80),
        HostPort(15021),
    )


def test_a_container_port_alone_takes_no_port_of_the_node() -> None:
    assert with_ports({"containerPort": 8080}, {"containerPort": 9090, "hostPort": 0}) == ()


def test_on_the_nodes_own_network_each_container_port_is_one_of_the_node() -> None:
    assert with_ports({"containerPort": 9100}, {"containerPort": 53, "protocol": "UDP"}, hostNetwork=True) == (
        HostPort(53, "UDP"),
        HostPort(9100),
    )


@pytest.mark.parametrize(("written", "ip"), [("0.0.0.0", ""), ("::", ""), ("", ""), ("10.0.0.7", "10.0.0.7")])
def test_the_addresses_that_mean_all_of_them_are_one(written: str, ip: str) -> None:
    assert with_ports({"hostPort": 80, "hostIP": written}) == (HostPort(80, ip=ip),)


def test_a_port_that_two_containers_share_is_taken_once() -> None:
    assert with_ports({"hostPort": 80}, {"hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP"}) == (HostPort(80),)


# --- what is broken


def spread_told(**more: Any) -> str:
    return told({"topologySpreadConstraints": [SPREAD, {**SPREAD, **more}]})


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"maxSkew": 0}, "maxSkew is 0, expected 1 or more"),
        ({"maxSkew": None}, "maxSkew is None, expected 1 or more"),
        ({"minDomains": 0}, "minDomains is 0, expected 1 or more"),
        ({"topologyKey": ""}, "topologyKey is missing"),
        ({"whenUnsatisfiable": "Perhaps"}, "whenUnsatisfiable is 'Perhaps', expected DoNotSchedule or ScheduleAnyway"),
        ({"whenUnsatisfiable": None}, "whenUnsatisfiable is '', expected DoNotSchedule or ScheduleAnyway"),
        ({"nodeTaintsPolicy": "Perhaps"}, "nodeTaintsPolicy is 'Perhaps', expected Honor or Ignore"),
        ({"matchLabelKeys": "app"}, "matchLabelKeys is 'app', expected a list of texts"),
        (
            {"labelSelector": {"matchExpressions": [expression("app", "Like", "web")]}},
            "label selector on app: operator 'Like', expected In",
        ),
        (
            {"labelSelector": {"matchExpressions": [expression("app", "Gt", "1")]}},
            "label selector on app: operator 'Gt', expected In",
        ),
    ],
)
def test_a_spread_constraint_that_is_broken_is_named_with_its_place_and_field(more: dict[str, Any], what: str) -> None:
    assert spread_told(**more).startswith(f"topologySpreadConstraints[1]: {what}")


@pytest.mark.parametrize(
    ("affinity", "what"),
    [
        ({"podAffinity": {REQUIRED: [{}]}}, "required podAffinity: topologyKey is missing"),
        ({"podAntiAffinity": {REQUIRED: [{**TERM, "namespaces": 7}]}}, "required podAntiAffinity: namespaces is 7"),
        (
            {"podAntiAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": TERM}]}},
            "preferred podAntiAffinity: weight is 0, expected 1 to 100",
        ),
        ({"podAffinity": {PREFERRED: [{"weight": 1}]}}, "preferred podAffinity: topologyKey is missing"),
        ({"podAffinity": 7}, "podAffinity is 7, expected an object"),
        (
            {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}},
            "preferred node affinity: weight is 101, expected 1 to 100",
        ),
    ],
)
def test_an_affinity_that_is_broken_is_named_with_its_field(affinity: dict[str, Any], what: str) -> None:
    assert told({"affinity": affinity}).startswith(what)


@pytest.mark.parametrize(
    ("port", "what"),
    [
        ({"hostPort": 65536}, "hostPort is 65536, expected 1 to 65535"),
        ({"hostPort": -1}, "hostPort is -1, expected 1 to 65535"),
        ({"hostPort": 80, "protocol": "HTTP"}, "the protocol of host port 80 is 'HTTP', expected TCP, UDP, SCTP"),
        ({"hostPort": "http"}, "hostPort is 'http', expected a whole number"),
    ],
)
def test_a_host_port_that_is_broken_is_named(port: dict[str, Any], what: str) -> None:
    assert told({"containers": [{"name": "main", "ports": [port]}]}) == what
