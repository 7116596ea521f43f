"""Kubelets of the sandbox read the user data that we write: what goes in by the policy comes out at the node."""

from __future__ import annotations

import pytest

from engine.model.environment import Cluster
from engine.model.policy import AmiFamily, Kubelet
from engine.model.quantity import Resources
from engine.policy.user_data import node_labels, user_data
from engine.sandbox.first_boot import first_boot
from tests import builders

CLUSTER = Cluster("c", "https://127.0.0.1:6443", "Y2E=", "10.100.0.0/16")
POOL = builders.node_pool(
    "gpu",
    labels={"team": "ml", "accelerator": "nvidia-l40s"},
    taints=(builders.taint("nvidia.com/gpu", "true"),),
    startup_taints=(builders.taint("example.com/agent", effect="NoExecute"),),
)
KUBELET = Kubelet(
    max_pods=58,
    pods_per_core=8,
    system_reserved=Resources.parse({"cpu": "100m", "memory": "100Mi"}),
    kube_reserved={"cpu": "200m", "memory": "1Gi"},
    eviction_hard={"memory.available": "5%"},
)


@pytest.mark.parametrize("family", [AmiFamily.AL2023, AmiFamily.AL2])
def test_a_kubelet_registers_with_what_the_pool_and_the_class_say(family: AmiFamily) -> None:
    node_class = builders.node_class(ami_family=family, kubelet=KUBELET, instance_store_raid0=True)
    boot = first_boot(user_data(POOL, node_class, CLUSTER, "spot"))
    assert boot.family is family
    assert boot.cluster_endpoint == CLUSTER.endpoint
    assert boot.labels == node_labels(POOL, "spot")
    assert boot.taints == (*POOL.taints, *POOL.startup_taints)
    assert boot.kubelet == KUBELET
    assert boot.instance_store_raid0


def test_a_classs_own_node_config_adds_its_labels_and_settings() -> None:
    own = (
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
        "spec:\n  kubelet:\n    config: {maxPods: 20}\n    flags: [--node-labels=own=yes]\n"
    )
    boot = first_boot(user_data(POOL, builders.node_class(user_data=own), CLUSTER, "on-demand"))
    assert boot.labels == {"own": "yes", **node_labels(POOL, "on-demand")}
    assert boot.kubelet.max_pods == 20


@pytest.mark.parametrize("text", ["", "#!/bin/sh\necho hello\n"])
def test_user_data_that_joins_no_cluster_sets_nothing(text: str) -> None:
    boot = first_boot(text)
    assert (boot.cluster_endpoint, boot.labels, boot.taints) == ("", {}, ())


def test_user_data_that_no_machine_could_read_is_refused() -> None:
    with pytest.raises(ValueError, match="no machine could read"):
        first_boot("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n")
