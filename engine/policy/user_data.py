"""What a node runs at its first boot to join the cluster, merged with the node class's own user data.

Forms: Amazon Linux 2023 has nodeadm read a NodeConfig (github.com/awslabs/amazon-eks-ami, nodeadm/api/v1alpha1);
Amazon Linux 2 has /etc/eks/bootstrap.sh. A custom image's user data is left as it is and must join by itself.
"""

from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml
from attrs import evolve

from engine.model import labels
from engine.model.constraint import Taint, TaintEffect
from engine.model.environment import Cluster
from engine.model.policy import AmiFamily, Kubelet, NodeClass, NodePool
from engine.model.quantity import CPU, Resources
from engine.policy.mime import NODE_CONFIG, SHELL, MimePart, multipart, parts_of

# EC2's limit, before base64.
MAX_USER_DATA_BYTES = 16 * 1024
# The cluster's DNS service has the tenth address of the service range, as EKS sets it up.
_DNS_ADDRESS = 10


def user_data(
    pool: NodePool, node_class: NodeClass, cluster: Cluster, capacity_type: str, *, held: bool = False
) -> str:
    """The user data in clear text. Raises MalformedUserData when the class's own is broken MIME.

    ``held``: the node registers with Karpenter's unregistered taint, so that nothing runs on it before a pass has seen
    it: its labels and its pods' nominations come first.
    """
    if held:
        unregistered = Taint(labels.UNREGISTERED_TAINT, "", TaintEffect.NO_EXECUTE)
        pool = evolve(pool, startup_taints=(*pool.startup_taints, unregistered))
    if node_class.ami_family is AmiFamily.CUSTOM:
        return node_class.user_data
    own = parts_of(node_class.user_data)
    if node_class.ami_family is AmiFamily.AL2:
        join = MimePart(SHELL, _bootstrap_script(pool, node_class, cluster, capacity_type))
    else:
        join = MimePart(NODE_CONFIG, _node_config(pool, node_class, cluster, capacity_type))
    return multipart([*own, join])


def node_labels(pool: NodePool, capacity_type: str) -> dict[str, str]:
    """The labels that a kubelet sets on its own node, in key order."""
    ours = {labels.NODE_POOL: pool.name, labels.NODE_CLASS: pool.node_class, labels.CAPACITY_TYPE: capacity_type}
    return dict(sorted({**pool.labels, **ours}.items()))


def _labels_flag(pool: NodePool, capacity_type: str) -> str:
    pairs = (f"{key}={value}" for key, value in node_labels(pool, capacity_type).items())
    return f"--node-labels={','.join(pairs)}"


def _taints(pool: NodePool) -> tuple[Taint, ...]:
    return (*pool.taints, *pool.startup_taints)


def _dns_addresses(kubelet: Kubelet, cluster: Cluster) -> tuple[str, ...]:
    if kubelet.cluster_dns:
        return kubelet.cluster_dns
    return (str(ipaddress.ip_network(cluster.service_cidr)[_DNS_ADDRESS]),)


def _quantities(amounts: Resources) -> dict[str, str]:
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}


def _node_config(pool: NodePool, node_class: NodeClass, cluster: Cluster, capacity_type: str) -> str:
    kubelet = node_class.kubelet
    config: dict[str, Any] = {"clusterDNS": list(_dns_addresses(kubelet, cluster))}
    settings = {
        "maxPods": kubelet.max_pods,
        "podsPerCore": kubelet.pods_per_core,
        "systemReserved": _quantities(kubelet.system_reserved),
        "kubeReserved": dict(sorted(kubelet.kube_reserved.items())),
        "evictionHard": dict(sorted(kubelet.eviction_hard.items())),
        "registerWithTaints": [_taint_object(taint) for taint in _taints(pool)],
    }
    config |= {name: value for name, value in settings.items() if value not in (None, {}, [])}
    spec: dict[str, Any] = {
        "cluster": {
            "name": cluster.name,
            "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.certificate_authority,
            "cidr": cluster.service_cidr,
        },
        "kubelet": {"config": config, "flags": [_labels_flag(pool, capacity_type)]},
    }
    if node_class.instance_store_raid0:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    node_config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    return _as_yaml(json.dumps(node_config))


@lru_cache(maxsize=1024)
def _as_yaml(written: str) -> str:
    """A JSON text as YAML. Each pass asks for the same few, and writing one takes milliseconds."""
    text: str = yaml.safe_dump(json.loads(written), sort_keys=False, width=4096, default_flow_style=False)
    return text


def _taint_object(taint: Taint) -> dict[str, str]:
    named = {"key": taint.key, "value": taint.value, "effect": taint.effect.value}
    return {name: text for name, text in named.items() if text}


def _bootstrap_script(pool: NodePool, node_class: NodeClass, cluster: Cluster, capacity_type: str) -> str:
    kubelet = node_class.kubelet
    arguments = ["--apiserver-endpoint", cluster.endpoint, "--b64-cluster-ca", cluster.certificate_authority]
    if ipaddress.ip_network(cluster.service_cidr).version == 6:
        arguments += ["--ip-family", "ipv6", "--service-ipv6-cidr", cluster.service_cidr]
    arguments += ["--dns-cluster-ip", _dns_addresses(kubelet, cluster)[0]]
    if kubelet.max_pods is not None:
        arguments += ["--use-max-pods", "false"]
    if node_class.instance_store_raid0:
        arguments += ["--local-disks", "raid0"]
    arguments += ["--kubelet-extra-args", " ".join(_kubelet_flags(pool, kubelet, capacity_type))]
    options = [f"  {name} {shlex.quote(value)}" for name, value in zip(arguments[::2], arguments[1::2], strict=True)]
    command = " \\\n".join([f"/etc/eks/bootstrap.sh {shlex.quote(cluster.name)}", *options])
    return f"#!/bin/bash\nset -e\n{command}\n"


def _kubelet_flags(pool: NodePool, kubelet: Kubelet, capacity_type: str) -> list[str]:
    flags = [_labels_flag(pool, capacity_type)]
    # The flag's grammar wants the equals sign also where a taint has no value.
    taints = ",".join(f"{taint.key}={taint.value}:{taint.effect.value}" for taint in _taints(pool))
    values = {
        "--register-with-taints": taints,
        "--max-pods": "" if kubelet.max_pods is None else str(kubelet.max_pods),
        "--pods-per-core": "" if kubelet.pods_per_core is None else str(kubelet.pods_per_core),
        "--system-reserved": _joined(_quantities(kubelet.system_reserved), "="),
        "--kube-reserved": _joined(kubelet.kube_reserved, "="),
        "--eviction-hard": _joined(kubelet.eviction_hard, "<"),
    }
    return flags + [f"{flag}={value}" for flag, value in values.items() if value]


def _joined(amounts: Mapping[str, str], sign: str) -> str:
    return ",".join(f"{name}{sign}{amount}" for name, amount in sorted(amounts.items()))
