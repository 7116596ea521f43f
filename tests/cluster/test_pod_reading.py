"""Pods as a real API server has them, with all that it fills in and merges, as they are read."""

from __future__ import annotations

from typing import Any

from engine.model.constraint import HostPort, Operator, PodTerm, Requirement, TopologySpread
from engine.model.pod import Placing
from engine.observe.pod_decoder import decode_pod
from tests.cluster.api import Cluster, eventually

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APP_IS_WEB = Requirement("app", Operator.IN, ("web",))
VERSION_IS_2 = Requirement("version", Operator.IN, ("2",))
TENANT_IS_ANOTHER = Requirement("tenant", Operator.NOT_IN, ("a",))
WEB = {"matchLabels": {"app": "web"}}


def placing(cluster: Cluster, **spec: Any) -> Placing:
    labels = {"app": "web", "version": "2", "tenant": "a"}
    containers = [{"name": "main", "image": "web:1"}]
    made = cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "labels": labels},
            "spec": {"containers": containers, "nodeSelector": {"nowhere": "to-be-found"}, **spec},
        }
    )
    return decode_pod(made).placing


def test_label_keys_that_the_api_server_merges_into_selectors_are_there_once(cluster: Cluster) -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": WEB,
        "matchLabelKeys": ["version", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB,
        "matchLabelKeys": ["version", "absent"],
    }

    read = placing(cluster, topologySpreadConstraints=[spread], affinity={"podAntiAffinity": {REQUIRED: [term]}})

    assert read.spreads == (TopologySpread("zone", 1, (APP_IS_WEB, VERSION_IS_2)),)
    assert read.pod_anti_affinity == (
        PodTerm("zone", (APP_IS_WEB, TENANT_IS_ANOTHER, VERSION_IS_2), namespaces=(cluster.namespace,)),
    )


def test_a_pod_on_the_nodes_own_network_takes_its_container_ports(cluster: Cluster) -> None:
    agent = {"name": "main", "image": "agent:1", "ports": [{"containerPort": 9100}]}
    init = {"name": "init", "image": "agent:1", "ports": [{"containerPort": 53, "protocol": "UDP"}]}

    read = placing(cluster, hostNetwork=True, containers=[agent], initContainers=[init])

    assert read.host_ports == (HostPort(53, "UDP"), HostPort(9100))


def test_an_ephemeral_volume_is_claimed_under_the_name_that_its_controller_gives(cluster: Cluster) -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}

    read = placing(cluster, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])

    claims = eventually(
        lambda: cluster.client.get(f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims")["items"],
        "the controller makes the claim",
    )
    assert read.volume_claims == tuple(claim["metadata"]["name"] for claim in claims) == ("web-scratch",)
