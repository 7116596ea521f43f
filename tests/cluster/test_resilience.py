"""What must not happen while things fail around `nodewright run`: a wrong removal, a machine twice, a person called.

One project on one plane serves all tests, in their order; each leaves it without machines and without a runner.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.ec2 import ec2_up
from engine.sandbox.kubelets import Kubelets, Pace
from engine.sandbox.plane_parts import API_SERVER, CONTROLLERS, SCHEDULER
from tests.cluster.api import Cluster, deployment, eventually
from tests.cluster.conftest import REGION
from tests.cluster.live_project import (
    LARGE_POD,
    POD,
    LiveProject,
    Runner,
    claim_of,
    ended,
    holds_for,
    nodes_of,
    tolerations,
    until_at_rest,
)

# Long enough for a restart of the API server to fall into it, and short enough to be over while it is away.
CONSOLIDATE_AFTER = "3s"
AWAY_SECONDS = 4.0
HANGING_SECONDS = 20.0
# Kubernetes' own parts take their time to come back.
PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module")
def live(
    control_plane: ControlPlane, ec2_state: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveProject]:
    plane, endpoint = control_plane.up(), ec2_up(ec2_state)
    ec2: Any = boto3.client(
        "ec2",
        region_name=REGION,
        endpoint_url=endpoint.url,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
    )
    environment = f"hard-{uuid.uuid4().hex[:6]}"
    folder = tmp_path_factory.mktemp("hard")
    kubelets = Kubelets(ec2, plane.parts_client, environment, Pace(poll_seconds=0.1))
    kubelets.start()
    made = LiveProject(folder, environment, plane, ec2, ec2_state, endpoint.url, CONSOLIDATE_AFTER, {"every": "1s"})
    try:
        with ended(made):
            yield made
    finally:
        kubelets.stop()


@pytest.fixture
def pods(live: LiveProject, cluster: Cluster) -> Iterator[Pods]:
    made = Pods(live, cluster)
    yield made
    live.mend()
    made.leave_nothing()


class Pods:
    """The test's Deployments, and the machines that they come to. A Deployment is named once and for all."""

    def __init__(self, live: LiveProject, cluster: Cluster) -> None:
        self.live, self.cluster = live, cluster
        self.names: list[str] = []
        self.launched_before = live.launched()

    def want(self, name: str, replicas: int, requests: dict[str, str] = POD) -> None:
        self.names.append(name)
        self.cluster.create(deployment(name, replicas, requests, tolerations=tolerations(self.live.environment)))

    def machines(self, *names: str) -> list[str]:
        """The instances under the running pods of these Deployments, one for each pod."""
        provider = {
            node["metadata"]["name"]: node["spec"]["providerID"].rpartition("/")[2]
            for node in nodes_of(self.cluster, self.live.environment)
        }
        running = (pod for name in names for pod in self.cluster.running(f"app={name}"))
        return sorted(provider.get(pod["spec"]["nodeName"], "") for pod in running)

    def are_running(self, count: int) -> bool:
        return len(self.machines(*self.names)) == count

    def until_running(self, count: int) -> None:
        eventually(lambda: self.are_running(count), f"{count} pods run", PATIENCE_SECONDS)

    def launched(self) -> int:
        """How many machines were ever launched in this test; no claim was launched twice."""
        new = self.live.launched() - self.launched_before
        assert set(new.values()) <= {1}, f"a claim has two machines: {new}"
        return new.total()

    def leave_nothing(self) -> None:
        """Every machine leaves by itself; a runner is started for that where none is left."""
        for name in self.names:
            self.cluster.delete("Deployment", name)
        running = [one for one in self.live.runners if one.is_running]
        if not running and (self.live.claims() or self.live.instances()):
            running = [self.live.start()]
        until_at_rest(self.live, machines=0)
        assert [one.stop() for one in running] == [0 for _ in running]

    def renewed(self, plane: Plane) -> None:
        """Go on with the plane's token of now."""
        self.cluster = Cluster(plane, self.cluster.namespace)


def holder(live: LiveProject, plane: Plane) -> str:
    lease = Cluster(plane, "kube-system").get("Lease", f"nodewright-{live.environment}") or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def used_machines_stand(live: LiveProject, used: list[str]) -> bool:
    return set(used) <= {one["InstanceId"] for one in live.instances("running")}


def test_a_watch_gap_with_a_restart_another_token_lost_machines_and_new_pods_is_seen_through(
    live: LiveProject, pods: Pods, control_plane: ControlPlane
) -> None:
    runner = live.start()
    pods.want("stays", 2)
    pods.want("dies", 1)
    pods.want("goes", 1)
    pods.until_running(4)
    until_at_rest(live, machines=4)
    used, (lost,) = pods.machines("stays"), pods.machines("dies")

    # While nobody watches: a machine dies, a node is emptied, pods come, the API server starts again with a new token.
    runner.freeze()
    live.ec2.terminate_instances(InstanceIds=[lost])
    pods.cluster.scale("goes", 0)
    pods.want("comes", 1, LARGE_POD)
    pods.renewed(control_plane.renew_token())
    whole_again(control_plane)
    eventually(lambda: len(nodes_of(pods.cluster, live.environment)) == 3, "the dead machine's Node is gone")
    for pod in pods.cluster.list("Pod", "app=dies"):
        pods.cluster.client.delete(
            f"/api/v1/namespaces/{pods.cluster.namespace}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0"
        )
    runner.thaw()

    pods.until_running(4)
    until_at_rest(live, machines=4)
    assert pods.machines("stays") == used
    assert lost not in {one["InstanceId"] for one in live.instances()}
    # One for each pod, and two more where the dead machine's pod found the emptied one gone.
    assert pods.launched() in (5, 6)
    assert runner.is_running


def test_an_api_server_that_stops_or_hangs_while_pods_wait_and_nodes_are_empty_past_their_time_is_waited_for(
    live: LiveProject, pods: Pods, control_plane: ControlPlane
) -> None:
    runner = live.start()
    pods.want("stays", 1)
    pods.want("goes", 1)
    pods.want("follows", 1)
    pods.until_running(3)
    used = pods.machines("stays")

    pods.cluster.scale("goes", 0)
    pods.want("waits", 1, LARGE_POD)
    control_plane.stop(API_SERVER)
    holds_for(AWAY_SECONDS, lambda: used_machines_stand(live, used), "machines with pods stand while nobody answers")
    whole_again(control_plane)
    pods.until_running(3)
    until_at_rest(live, machines=3)
    assert pods.machines("stays") == used
    assert pods.launched() == 4

    pods.cluster.scale("follows", 0)
    pods.want("waits-too", 1, LARGE_POD)
    control_plane.pause(API_SERVER)
    try:
        holds_for(HANGING_SECONDS, lambda: used_machines_stand(live, used), "machines with pods stand")
    finally:
        control_plane.resume(API_SERVER)
    whole_again(control_plane)
    pods.until_running(3)
    until_at_rest(live, machines=3)
    assert pods.machines("stays") == used
    assert pods.launched() == 5
    assert runner.is_running


def test_of_two_runners_one_works_the_other_adopts_what_a_killed_one_launched_and_a_stopped_one_leaves_all_on_record(
    live: LiveProject, pods: Pods, plane: Plane
) -> None:
    first, second = live.start("checkout-a"), live.start("checkout-b")
    pods.want("shared", 4)
    pods.until_running(4)
    until_at_rest(live, machines=4)
    assert pods.launched() == 4

    # From here on a launch takes seconds, as a real one does.
    live.delay("DescribeInstances", 1.5)
    known = len(live.launches_received())
    pods.want("late", 1)
    eventually(lambda: len(live.launches_received()) > known, "the launch is under way")
    leader, other = in_charge(live, plane, first, second)
    leader.kill_with_all_it_started()
    live.mend()
    # The dead one's Lease runs out by itself; nobody takes anything away meanwhile.
    pods.until_running(5)
    until_at_rest(live, machines=5)
    assert pods.launched() == 5

    live.delay("DescribeInstances", 1.5)
    known = len(live.launches_received())
    pods.want("later", 2)
    eventually(lambda: len(live.launches_received()) > known, "a launch is under way")
    assert other.stop() == 0, other.words
    live.mend()
    assert holder(live, plane) == ""
    # Whoever comes next neither launches it again nor loses it.
    assert live.ids_in_state() == sorted(one["InstanceId"] for one in live.instances())
    assert {claim_of(one) for one in live.instances()} <= set(live.claims())

    live.start()
    pods.until_running(7)
    until_at_rest(live, machines=7)
    assert pods.launched() == 7


def test_clocks_that_are_wrong_by_hours_take_nothing_that_is_used_and_buy_nothing_twice(
    live: LiveProject, pods: Pods
) -> None:
    ahead = live.start(clock_ahead_seconds=3 * 3600.0)
    pods.want("stays", 1)
    pods.until_running(1)
    until_at_rest(live, machines=1)
    assert ahead.stop() == 0

    live.start("checkout-b", clock_ahead_seconds=-3 * 3600.0)
    pods.want("goes", 1)
    pods.until_running(2)
    until_at_rest(live, machines=2)
    used = pods.machines("stays")
    pods.cluster.scale("goes", 0)
    until_at_rest(live, machines=1)
    assert pods.machines("stays") == used
    assert pods.launched() == 2


def whole_again(control_plane: ControlPlane) -> None:
    """Kubernetes' own parts look ever more rarely for an API server that was away; new ones look at once."""
    control_plane.up()
    for part in (CONTROLLERS, SCHEDULER):
        control_plane.restart(part)


def in_charge(live: LiveProject, plane: Plane, *runners: Runner) -> tuple[Runner, Runner]:
    """The runner that holds the Lease, and the other one."""
    name = eventually(lambda: holder(live, plane), "somebody holds the Lease")
    pids = [str(one.process.pid) for one in runners]
    held = next(index for index, pid in enumerate(pids) if f"-{pid}-" in name)
    return runners[held], runners[1 - held]
