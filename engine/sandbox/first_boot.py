"""What a machine's user data makes of its kubelet: the labels and taints that it registers with, and its settings.

Reads the two forms that engine/policy/user_data.py writes, as nodeadm and /etc/eks/bootstrap.sh would.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from attrs import evolve, field, frozen

from engine.model.constraint import Taint, TaintEffect
from engine.model.policy import AmiFamily, Kubelet
from engine.model.quantity import Resources
from engine.policy.mime import NODE_CONFIG, MalformedUserData, parts_of

_BOOTSTRAP = "/etc/eks/bootstrap.sh"
_EXTRA_ARGUMENTS = "--kubelet-extra-args"


@frozen
class FirstBoot:
    """``cluster_endpoint`` is where the kubelet registers; empty: this user data joins no cluster."""

    family: AmiFamily = AmiFamily.CUSTOM
    cluster_endpoint: str = ""
    labels: Mapping[str, str] = field(factory=dict)
    taints: tuple[Taint, ...] = ()
    kubelet: Kubelet = Kubelet()
    instance_store_raid0: bool = False


def first_boot(user_data: str) -> FirstBoot:
    """Raises ValueError for user data that a machine could not read either."""
    found = FirstBoot()
    try:
        for part in parts_of(user_data):
            if part.content_type.startswith(NODE_CONFIG):
                found = _with_node_config(found, yaml.safe_load(part.content))
            elif _BOOTSTRAP in part.content:
                found = _with_bootstrap(found, part.content)
    except (MalformedUserData, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"user data that no machine could read: {error}") from error
    return found


def _with_node_config(found: FirstBoot, node_config: Mapping[str, Any]) -> FirstBoot:
    """NodeConfigs are merged in their order; the later one's words win."""
    spec = node_config["spec"]
    kubelet = spec.get("kubelet") or {}
    config: Mapping[str, Any] = kubelet.get("config") or {}
    flags = dict(_flags(kubelet.get("flags") or []))
    settings = found.kubelet
    if "maxPods" in config:
        settings = evolve(settings, max_pods=int(config["maxPods"]))
    if "podsPerCore" in config:
        settings = evolve(settings, pods_per_core=int(config["podsPerCore"]))
    if "systemReserved" in config:
        settings = evolve(settings, system_reserved=Resources.parse(config["systemReserved"]))
    if "kubeReserved" in config:
        settings = evolve(settings, kube_reserved=dict(config["kubeReserved"]))
    if "evictionHard" in config:
        settings = evolve(settings, eviction_hard=dict(config["evictionHard"]))
    storage = (spec.get("instance") or {}).get("localStorage") or {}
    taints = tuple(
        Taint(each["key"], each.get("value", ""), TaintEffect(each["effect"]))
        for each in config.get("registerWithTaints") or []
    )
    return FirstBoot(
        family=AmiFamily.AL2023,
        cluster_endpoint=(spec.get("cluster") or {}).get("apiServerEndpoint", found.cluster_endpoint),
        labels={**found.labels, **_pairs(flags.get("--node-labels", ""), "=")},
        taints=taints or found.taints,
        kubelet=settings,
        instance_store_raid0=found.instance_store_raid0 or storage.get("strategy") == "RAID0",
    )


def _with_bootstrap(found: FirstBoot, script: str) -> FirstBoot:
    words = shlex.split(script[script.index(_BOOTSTRAP) :].replace("\\\n", " ").partition("\n")[0])
    options = dict(zip(words[2::2], words[3::2], strict=False))
    flags = dict(_flags(shlex.split(options.get(_EXTRA_ARGUMENTS, ""))))
    kubelet = Kubelet(
        max_pods=_number(flags.get("--max-pods")),
        pods_per_core=_number(flags.get("--pods-per-core")),
        system_reserved=Resources.parse(_pairs(flags.get("--system-reserved", ""), "=")),
        kube_reserved=_pairs(flags.get("--kube-reserved", ""), "="),
        eviction_hard=_pairs(flags.get("--eviction-hard", ""), "<"),
    )
    return FirstBoot(
        family=AmiFamily.AL2,
        cluster_endpoint=options.get("--apiserver-endpoint", ""),
        labels=_pairs(flags.get("--node-labels", ""), "="),
        taints=tuple(_flag_taints(flags.get("--register-with-taints", ""))),
        kubelet=kubelet,
        instance_store_raid0=options.get("--local-disks") == "raid0" or found.instance_store_raid0,
    )


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, _, value = word.partition("=")
        yield name, value


def _pairs(text: str, sign: str) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition(sign) for pair in text.split(",") if pair)}


def _flag_taints(text: str) -> Iterator[Taint]:
    for written in filter(None, text.split(",")):
        named, _, effect = written.rpartition(":")
        key, _, value = named.partition("=")
        yield Taint(key, value, TaintEffect(effect))


def _number(text: str | None) -> int | None:
    return int(text) if text else None
