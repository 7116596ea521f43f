"""Installing into a cluster: what is asked, what is refused, whose namespace it is, and when nothing is compared."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from attrs import evolve, frozen

from engine.model import labels as keys
from engine.model.canonical import digest
from engine.model.environment import ClusterKind, InCluster, Sandbox
from engine.model.fault import Fault
from engine.model.in_cluster import AddOns, ChangeKind, InstallOutcome, ObjectChange, StandingAddOns
from engine.model.node import Node
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.reconcile.installing import (
    Installation,
    install,
    propose,
    propose_if_new,
    refuse_simulated,
    remove,
    wanted_add_ons,
)
from tests import builders
from tests.builders import node, node_pool, pod

A_CHANGE = ObjectChange(ChangeKind.CREATE, "Namespace", "nw")


class Stack:
    """A stack that is never there for real; remembers what was asked of it."""

    def __init__(self, standing: StandingAddOns | None = None) -> None:
        self.held = standing or StandingAddOns()
        self.asked: list[str] = []

    def standing(self) -> StandingAddOns:
        return self.held

    def preview(self, add_ons: AddOns) -> tuple[ObjectChange, ...]:
        self.asked.append("preview")
        return (A_CHANGE,)

    def apply(self, add_ons: AddOns, on_event: object) -> InstallOutcome:
        self.asked.append("apply")
        self.held = StandingAddOns(digest=digest(add_ons), owns_namespace=add_ons.owns_namespace, is_empty=False)
        return InstallOutcome((A_CHANGE,))

    def remove(self, on_event: object) -> InstallOutcome:
        self.asked.append("remove")
        self.held = StandingAddOns()
        return InstallOutcome((A_CHANGE,))


@frozen
class Server:
    """Answers each question alike; `labels` are the namespace's."""

    status: int = 404
    labels: dict[str, str] | None = None

    def ask(self, method: str, path: str) -> tuple[int, bytes]:
        return self.status, json.dumps({"metadata": {"labels": self.labels}, "message": "because"}).encode()


def parts(
    asked: InCluster | None = None,
    server: Server | None = None,
    stack: Stack | None = None,
    pods: Iterable[Pod] = (),
    nodes: Iterable[Node] = (),
) -> Installation:
    return Installation(
        environment=evolve(builders.environment(), in_cluster=asked or InCluster(namespace="nw")),
        policy=Policy((node_pool(),), ()),
        server=server or Server(),
        stack=stack or Stack(),
        workload=lambda: (pods, nodes),
    )


def quietly(_: object) -> None:
    return None


def test_a_namespace_that_is_not_there_yet_is_the_environments_own() -> None:
    assert wanted_add_ons(parts(server=Server(404))).owns_namespace


def test_a_namespace_that_somebody_else_made_is_left_to_them() -> None:
    assert not wanted_add_ons(parts(server=Server(200, {"team": "x"}))).owns_namespace


def test_a_namespace_that_a_killed_install_left_is_known_by_its_label() -> None:
    assert wanted_add_ons(parts(server=Server(200, {keys.TAG_ENVIRONMENT: "test"}))).owns_namespace
    assert not wanted_add_ons(parts(server=Server(200, {keys.TAG_ENVIRONMENT: "other"}))).owns_namespace


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_kubernetes_own_namespaces_are_never_owned(namespace: str) -> None:
    of = parts(InCluster(namespace=namespace), Server(200, {keys.TAG_ENVIRONMENT: "test"}))
    assert not wanted_add_ons(of).owns_namespace


def test_an_api_server_that_refuses_ends_it_before_anything_is_compared() -> None:
    stack = Stack()
    with pytest.raises(Fault, match="answered 403 when asked for namespace nw: because"):
        propose(parts(server=Server(403), stack=stack))
    assert stack.asked == []


def test_pods_are_read_only_when_their_images_are_wanted() -> None:
    waiting = evolve(pod(gpu=1, node="n1"), images=("a:1",))
    on = node("n1", labels={keys.NODE_POOL: "gpu"})
    assert wanted_add_ons(parts(InCluster(pre_pull=True), pods=[waiting], nodes=[on])).pre_pulls[0].images == ("a:1",)
    assert wanted_add_ons(parts(InCluster(pre_pull=False), pods=[waiting], nodes=[on])).pre_pulls == ()


def test_what_was_installed_last_is_not_compared_again_by_the_way_but_always_on_request() -> None:
    stack = Stack()
    of = parts(stack=stack)
    assert install(of, propose_if_new(of), quietly).is_settled
    assert propose_if_new(of).changes == ()
    assert stack.asked == ["preview", "apply"]
    assert propose(of).changes == (A_CHANGE,)


def test_what_changed_since_is_compared() -> None:
    stack = Stack(StandingAddOns(digest="of something else", is_empty=False))
    assert propose_if_new(parts(stack=stack)).changes == (A_CHANGE,)


def test_removing_where_nothing_was_installed_asks_no_api_server() -> None:
    stack = Stack()
    assert remove(parts(server=Server(500), stack=stack), quietly) == InstallOutcome()
    assert stack.asked == []


def test_removing_is_refused_when_the_api_server_does_not_answer_well() -> None:
    stack = Stack(StandingAddOns(digest="x", is_empty=False))
    with pytest.raises(Fault, match="answered 503"):
        remove(parts(server=Server(503), stack=stack), quietly)
    assert stack.asked == []


def test_a_simulated_cluster_is_refused_by_name_and_a_real_one_is_not() -> None:
    simulated = evolve(builders.environment(), sandbox=Sandbox(pods=1))
    with pytest.raises(Fault, match="environment test is a sandbox with a simulated cluster") as refused:
        refuse_simulated(simulated)
    assert "nodewright:sandbox.cluster to real" in refused.value.hints[0]
    refuse_simulated(evolve(simulated, sandbox=Sandbox(pods=1, cluster=ClusterKind.REAL)))
    refuse_simulated(builders.environment())
