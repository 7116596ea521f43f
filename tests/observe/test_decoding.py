"""Kubernetes JSON as model values: placing constraints, daemonsets and nodes, and objects that are broken."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from engine.model.constraint import HostPort, Operator, PodTerm, Requirement, Taint, TaintEffect, Toleration
from engine.model.coupling import couplings
from engine.model.pod import Owner, PodKey, PodPhase
from engine.model.quantity import Resources
from engine.observe.json_fields import BrokenObject
from engine.observe.kubernetes import decode_daemon_sets, decode_nodes, decode_pods
from engine.observe.node_decoder import decode_node
from engine.observe.pod_decoder import decode_pod
from engine.scheduling.terms import is_spare
from tests.builders import NOON
from tests.observe.kubernetes_objects import (
    container,
    expression,
    node_object,
    pod_object,
    required,
)


def decoded(spec: dict[str, Any] | None = None, **metadata: Any) -> Any:
    (pod,), problems = decode_pods([pod_object(spec, **metadata)])
    assert problems == ()
    return pod


# --- placing


def test_a_pod_is_read_with_all_that_places_it() -> None:
    pod = decoded(
        {
            "nodeSelector": {"tier": "gpu"},
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "team", "value": "ml"},
                {"operator": "Exists"},
            ],
            "priority": 1000,
            "schedulingGates": [{"name": "wait"}],
        },
        labels={"app": "web"},
        ownerReferences=[
            {"kind": "Something", "name": "else"},
            {"kind": "ReplicaSet", "name": "web", "controller": True},
        ],
        deletionTimestamp="2026-11-30T12:05:00Z",
    )

    assert pod.key == PodKey("default", "web-1")
    assert pod.placing.node_selector == {"tier": "gpu"}
    assert pod.placing.tolerations == (
        Toleration("nvidia.com/gpu", exists=True, effect=TaintEffect.NO_SCHEDULE),
        Toleration("team", value="ml"),
        Toleration(exists=True),
    )
    assert (pod.owner, pod.priority, pod.labels) == (Owner("ReplicaSet", "web"), 1000, {"app": "web"})
    assert (pod.created_at, pod.phase, pod.node_name) == (NOON, PodPhase.PENDING, None)
    assert (pod.deleting, pod.scheduling_gated, pod.do_not_disrupt) == (True, True, False)
    assert pod.placing.unsupported == ()


def test_required_node_affinity_keeps_all_of_its_terms() -> None:
    pod = decoded(
        required(
            {"matchExpressions": [expression("zone", "In", "a", "b"), expression("gpu", "Exists")]},
            {"matchExpressions": [expression("cores", "Gt", "7")]},
        )
    )

    assert pod.placing.affinity_terms == (
        (Requirement("zone", Operator.IN, ("a", "b")), Requirement("gpu", Operator.EXISTS)),
        (Requirement("cores", Operator.GT, ("7",)),),
    )


def test_a_term_without_expressions_matches_nothing_and_is_dropped() -> None:
    pod = decoded(required({}, {"matchExpressions": [expression("gpu", "Exists")]}))

    assert pod.placing.affinity_terms == ((Requirement("gpu", Operator.EXISTS),),)
    assert decoded(required({})).placing.unsupported == ("node affinity without a term that any node meets",)


SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def test_what_is_only_preferred_is_no_demand() -> None:
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
    preferred = {"weight": 1, "preference": {"matchExpressions": [expression("gpu", "Exists")]}}
    pod = decoded(
        {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]},
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]},
            },
            "topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}],
        }
    )

    assert (pod.placing.affinity_terms, pod.placing.unsupported) == ((), ())


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "resource claims"),
        (required({"matchFields": [expression("metadata.name", "In", "n")]}), "node affinity by field (matchFields)"),
        ({"tolerations": [{"key": "score", "operator": "Gt", "value": "5"}]}, "toleration by comparison"),
    ],
)
def test_what_cannot_be_placed_is_named(spec: dict[str, Any], name: str) -> None:
    assert decoded(spec).placing.unsupported == (name,)


COUPLED: list[tuple[dict[str, Any], str]] = [
    (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}},
        "required pod affinity",
    ),
    (
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}},
        "required pod anti-affinity",
    ),
    ({"topologySpreadConstraints": [SPREAD]}, "topology spread (DoNotSchedule)"),
    ({"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}, "host ports"),
    ({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}, "persistent volumes"),
    ({"volumes": [{"name": "data", "ephemeral": {}}]}, "persistent volumes"),
]


@pytest.mark.parametrize(("spec", "name"), COUPLED)
def test_what_ties_a_pod_is_read_and_named_and_no_reason_to_refuse_it(spec: dict[str, Any], name: str) -> None:
    pod = decoded(spec)
    assert pod.placing.unsupported == ()
    assert tuple(couplings(pod.placing)) == (name,)


def test_a_pods_own_constraints_are_read_of_bound_ones_too() -> None:
    asked = {**COUPLED[1][0], "nodeName": "node-1", "priorityClassName": "high"}
    pod = decoded(asked, labels={"app": "web"})

    assert pod.node_name == "node-1"
    assert pod.placing.pod_anti_affinity == (PodTerm("z", None, namespaces=("default",)),)
    assert pod.priority_class == "high"


# --- volumes


def test_claims_are_those_that_the_pod_names_and_those_made_for_its_ephemeral_volumes() -> None:
    volumes = [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "none", "persistentVolumeClaim": None, "ephemeral": None, "emptyDir": {}},
    ]

    assert decoded({"volumes": volumes}).placing.volume_claims == ("models", "web-1-scratch")


def test_volumes_that_bind_to_no_node_are_no_hindrance() -> None:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "b"}}, {"name": "c", "projected": {}}]

    placing = decoded({"volumes": volumes}).placing
    assert (placing.volume_claims, placing.unsupported) == ((), ())


@pytest.mark.parametrize(
    ("value", "minutes_later", "is_held"),
    [
        ("true", 9999, True),
        ("false", 0, False),
        ("yes", 0, False),
        ("1h", 59, True),
        ("1h", 60, False),
    ],
)
def test_do_not_disrupt_holds_for_ever_or_for_its_duration(value: str, minutes_later: int, is_held: bool) -> None:
    raw = pod_object(None, annotations={"karpenter.sh/do-not-disrupt": value})

    ((pod,), _) = decode_pods([raw], now=NOON + timedelta(minutes=minutes_later))

    assert pod.do_not_disrupt is is_held


def test_a_duration_of_do_not_disrupt_counts_from_the_pods_start() -> None:
    raw = pod_object({"nodeName": "n"}, annotations={"karpenter.sh/do-not-disrupt": "1h"})
    raw["status"] = {"phase": "Running", "startTime": "2026-11-30T13:00:00Z"}

    ((pod,), _) = decode_pods([raw], now=NOON + timedelta(minutes=90))

    assert pod.do_not_disrupt


@pytest.mark.parametrize(("value", "seconds"), [("90s", 90), ("1h30m", 5400), ("24h", 86_400), ("0s", 0)])
def test_a_pod_says_for_how_long_it_warms_up(value: str, seconds: int) -> None:
    ((pod,), problems) = decode_pods([pod_object(None, annotations={"nodewright.dev/warm-up": value})])

    assert (pod.warm_up, problems) == (timedelta(seconds=seconds), ())
    assert decoded().warm_up is None


@pytest.mark.parametrize("value", ["10", "-5m", "soon", "25h", "", "9" * 400 + "h"])
def test_a_warm_up_that_is_no_duration_is_ignored_and_told_and_the_pod_is_as_any_other(value: str) -> None:
    ((pod,), (problem,)) = decode_pods([pod_object(None, annotations={"nodewright.dev/warm-up": value})])

    assert (pod.warm_up, pod.placing.unsupported) == (None, ())
    assert "nodewright.dev/warm-up is" in str(problem)
    assert str(problem).endswith("expected a duration such as 90s or 10m, at most 24h; it is ignored")


# --- daemonsets and nodes


def test_a_daemonset_is_its_templates_overhead() -> None:
    template = {"containers": [container(cpu="100m")], "tolerations": [{"operator": "Exists"}], "hostNetwork": True}
    raw = {"metadata": {"name": "agent"}, "spec": {"template": {"spec": template}}}

    ((found,), problems) = decode_daemon_sets([raw])

    assert (found.name, found.placing.requests) == ("agent", Resources({"cpu": 100, "pods": 1}))
    assert found.placing.tolerations == (Toleration(exists=True),)
    assert problems == ()


def test_a_daemonset_takes_its_host_ports_on_each_node() -> None:
    agent = {**container(cpu="100m"), "ports": [{"containerPort": 9100}]}
    raw = {"metadata": {"name": "agent"}, "spec": {"template": {"spec": {"containers": [agent], "hostNetwork": True}}}}

    ((found,), _) = decode_daemon_sets([raw])

    assert found.placing.host_ports == (HostPort(9100),)
    assert found.placing.unsupported == ()


def test_a_node_is_read_whole() -> None:
    raw = node_object(
        spec={
            "providerID": "aws:///us-east-1a/i-0123",
            "unschedulable": True,
            "taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}],
        }
    )

    ((node,), problems) = decode_nodes([raw])

    assert (node.name, node.instance_id, node.labels, node.created_at) == ("node-1", "i-0123", {"zone": "a"}, NOON)
    assert node.allocatable == Resources({"cpu": 3920, "memory": 14162 * 2**20, "nvidia.com/gpu": 1, "pods": 58})
    assert node.taints == (Taint("karpenter.sh/disrupted", "", TaintEffect.NO_SCHEDULE),)
    assert (node.ready, node.unschedulable, node.is_marked, node.deleting) == (True, True, True, False)
    assert problems == ()


@pytest.mark.parametrize(
    ("written", "seconds"), [(None, 30), (0, 0), (600, 600), (-1, 0), (2**62, 10 * 365 * 24 * 3600)]
)
def test_a_pods_grace_is_its_own_or_what_kubernetes_gives(written: int | None, seconds: int) -> None:
    spec = {} if written is None else {"terminationGracePeriodSeconds": written}

    assert decode_pod(pod_object(spec)).grace == timedelta(seconds=seconds)


def test_a_pod_that_is_going_tells_when_its_time_is_over() -> None:
    going = decode_pod(pod_object(deletionTimestamp="2026-11-30T12:10:00Z"))

    assert (going.deleting, going.ends_by) == (True, NOON + timedelta(minutes=10))


def test_the_mark_tells_since_when_the_node_is_to_leave() -> None:
    others = {"key": "nvidia.com/gpu", "effect": "NoSchedule", "timeAdded": "2026-11-30T11:00:00Z"}
    mark = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}

    assert decode_node(node_object(spec={"taints": [others, mark]})).marked_at is None
    timed = mark | {"timeAdded": "2026-11-30T12:00:00Z"}
    assert decode_node(node_object(spec={"taints": [others, timed]})).marked_at == NOON


def asking(value: str) -> dict[str, Any]:
    raw = node_object()
    return {**raw, "metadata": {**raw["metadata"], "annotations": {"nodewright.dev/replace": value}}}


@pytest.mark.parametrize(
    ("value", "at"), [("now", None), ("2026-11-30T12:00:00Z", NOON), ("2026-11-30T13:00:00+01:00", NOON)]
)
def test_a_node_tells_that_another_is_asked_for_in_its_stead_and_since_when(value: str, at: datetime | None) -> None:
    ((node,), problems) = decode_nodes([asking(value)])

    assert (node.replace_asked, node.replace_asked_at, problems) == (True, at, ())
    assert not decode_node(node_object()).replace_asked


@pytest.mark.parametrize("value", ["", "soon", "true", "2026-13-40T12:00:00Z"])
def test_a_request_that_nobody_understands_is_told_once_and_changes_nothing_of_the_node(value: str) -> None:
    ((node,), problems) = decode_nodes([asking(value)])

    assert node == decode_node(node_object())
    assert [str(each) for each in problems] == [
        f"Node node-1: annotation nodewright.dev/replace is {value!r}, expected now or a time such as "
        "2026-11-30T12:00:00Z; it is ignored"
    ]


@pytest.mark.parametrize("conditions", [[], [{"type": "Ready", "status": "Unknown"}]])
def test_a_node_is_ready_only_when_it_says_so(conditions: list[Any]) -> None:
    ((node,), _) = decode_nodes([node_object(status={"conditions": conditions})])

    assert not node.ready


# --- broken objects


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"spec": {"containers": [container(cpu="lots")]}}, "container 'main': resources.requests.cpu: 'lots' is not"),
        ({"spec": {"containers": [container(gpu="-1")]}}, "is negative"),
        ({"spec": {"containers": [container(cpu=True)]}}, "requests.cpu is True, expected a quantity"),
        ({"spec": {"containers": "none"}}, "containers is 'none', expected a list"),
        ({"spec": {"nodeSelector": {"tier": 1}}}, "nodeSelector[tier] is 1, expected a text"),
        ({"spec": {"tolerations": [{"effect": "Sometimes"}]}}, "effect is 'Sometimes', expected one of NoSchedule"),
        ({"spec": required({"matchExpressions": [expression("a", "Like", "b")]})}, "operator 'Like'"),
        ({"spec": {"priority": "high"}}, "priority is 'high', expected a whole number"),
        (
            {"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {}}]}},
            "volume 'data': persistentVolumeClaim.claimName is missing",
        ),
        ({"status": {"phase": "Dreaming"}}, "status.phase is 'Dreaming'"),
        ({"metadata": {"name": "web-1", "namespace": "default"}}, "creationTimestamp is None, expected a time"),
        (
            {"metadata": {"name": "web-1", "namespace": "default", "creationTimestamp": "yesterday"}},
            "creationTimestamp is 'yesterday', expected a time such as",
        ),
    ],
)
def test_a_broken_pod_is_named_with_what_is_wrong_and_the_rest_goes_on(change: dict[str, Any], what: str) -> None:
    whole = pod_object(name="whole")

    pods, (problem,) = decode_pods([{**pod_object(), **change}, whole])

    assert (problem.kind, problem.namespace, problem.name) == ("Pod", "default", "web-1")
    assert what in problem.what
    assert [pod.key.name for pod in pods] == ["web-1", "whole"]


def test_a_broken_pod_that_waits_is_refused_with_its_fault() -> None:
    ((pod,), _) = decode_pods([pod_object({"containers": [container(cpu="lots")]})])

    assert pod.is_waiting
    assert pod.placing.unsupported[0].startswith("unreadable: container 'main'")


def test_a_broken_pod_that_runs_holds_its_node() -> None:
    raw = pod_object({"nodeName": "node-1", "containers": "none"})
    raw["status"] = {"phase": "Running"}

    ((pod,), _) = decode_pods([raw])

    assert (pod.node_name, pod.phase, pod.do_not_disrupt) == ("node-1", PodPhase.RUNNING, True)


def test_a_broken_node_is_kept_without_room_so_that_its_machine_is_not_taken_for_lost() -> None:
    broken = node_object(status={"allocatable": {"cpu": "lots"}})

    (node, whole), (problem,) = decode_nodes([broken, node_object()])

    assert "allocatable.cpu: 'lots' is not a quantity" in problem.what
    assert (node.instance_id, node.allocatable, node.ready, node.unschedulable) == ("i-0123", Resources(), False, True)
    assert node.do_not_disrupt
    assert whole.ready


@pytest.mark.parametrize("decode", [decode_pods, decode_nodes, decode_daemon_sets])
def test_what_is_no_object_at_all_is_told_by_its_place(decode: Any) -> None:
    values, (problem,) = decode([None])

    assert values == ()
    assert problem.name == "number 1 of the list"
    assert "expected an object" in problem.what


def test_a_pod_without_a_namespace_is_told_and_is_in_no_namespace_that_there_could_be() -> None:
    (pod,), (problem,) = decode_pods([{"metadata": {"name": "web-0"}, "spec": {}}])
    assert (problem.name, problem.what) == ("web-0", "metadata.namespace is missing")
    assert pod.key == PodKey("(no namespace)", "web-0")
    assert not is_spare(pod.key)
    assert pod.placing.unsupported == ("unreadable: metadata.namespace is missing",)


@pytest.mark.parametrize("raw", [None, [], "web", 7])
def test_what_is_no_object_is_a_broken_one(raw: Any) -> None:
    with pytest.raises(BrokenObject, match="expected an object"):
        decode_pod(raw)
    pods, (problem,) = decode_pods([raw])
    assert (pods, problem.name) == ((), "number 1 of the list")
