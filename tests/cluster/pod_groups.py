"""Groups of equal pods, as replicas of one deployment are, each tied to nodes, volumes and other pods in drawn ways.

Only what can be met is drawn: for each of the keys that nodes share (zone, capacity type, rack) and for the node itself
a group asks at most one thing, and nothing that another group's wish contradicts. So every pod should land.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from engine.model import labels as keys

RUN = "test.example.com/run"
TEAM = "test.example.com/team"
GPU = "nvidia.com/gpu"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
RACKS = ("r1", "r2", "r3")
CAPACITY_TYPES = (keys.SPOT, keys.ON_DEMAND)
PRIORITIES = {"promised-high": 1000, "promised-low": -10}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_FAMILY = "karpenter.k8s.aws/instance-family"
_CPU = "karpenter.k8s.aws/instance-cpu"
_GPU_NAME = "karpenter.k8s.aws/instance-gpu-name"


def rack_key(run: str) -> str:
    """A label of a run's own nodes, so that what ignores node affinity sees no other run's."""
    return f"rack.example.com/{run}"


@frozen
class Ground:
    """What the groups of a run may count on: its namespaces, and what its pools leave open."""

    run: str
    namespaces: tuple[str, str]
    for_team: bool
    has_spot: bool


@define
class Group:
    """Manifests: pods, the claims that they mount, and the volumes that some of these are bound to already."""

    name: str
    namespace: str
    pods: list[dict[str, Any]] = field(factory=list)
    claims: list[dict[str, Any]] = field(factory=list)
    volumes: list[dict[str, Any]] = field(factory=list)
    is_spread: bool = False


def group(draw: random.Random, ground: Ground, number: int, earlier: Sequence[Group]) -> Group:
    return _Drawing(draw, ground, number, earlier).group()


class _Drawing:
    """One group, wish by wish."""

    def __init__(self, draw: random.Random, ground: Ground, number: int, earlier: Sequence[Group]) -> None:
        self._draw, self._ground, self._earlier = draw, ground, earlier
        self._made = Group(f"{ground.run}-{number}", draw.choice((ground.namespaces[0], *ground.namespaces)))
        self._labels = {RUN: ground.run, "app": self._made.name, "version": draw.choice(("v1", "v2"))}
        self._gpus = draw.choice([0, 0, 1, 1, 1, 2, 4])
        self._count = draw.randint(1, 7)
        self._selector = {RUN: ground.run}
        self._terms: list[list[dict[str, Any]]] = []
        self._spreads: list[dict[str, Any]] = []
        self._affinity: list[dict[str, Any]] = []
        self._anti_affinity: list[dict[str, Any]] = []
        self._ports: list[dict[str, Any]] = []
        self._waits_for_others = False
        self._spec: dict[str, Any] = {}

    def group(self) -> Group:
        stays_on_one_node = self._one_in(12)
        if stays_on_one_node:
            # Nothing that tells pods to part goes with this, and there are eight GPUs on the largest node.
            self._count, self._gpus = min(self._count, 3), min(self._gpus, 2)
            self._affinity.append(self._term(keys.HOSTNAME))
        else:
            self._by_zone()
            self._by_capacity_type()
            self._by_rack()
            self._by_node()
        self._by_type()
        self._wishes()
        self._spec["containers"], self._spec["initContainers"] = self._containers(), self._init_containers()
        volume = self._draw.choice((None, None, None, None, "waits", "waits", "bound"))
        if volume == "bound" and (self._affinity or self._anti_affinity or self._made.is_spread):
            volume = "waits"
        zone = self._selector.get(keys.ZONE) or self._draw.choice(ZONES)
        for replica in range(self._count):
            self._made.pods.append(self._pod(replica, volume, zone))
        return self._made

    def _by_zone(self) -> None:
        match self._draw.choice(("", "", "pin", "spread", "spread", "together", "apart", "near")):
            case "pin":
                self._selector[keys.ZONE] = self._draw.choice(ZONES)
            case "spread":
                self._spread(keys.ZONE, len(ZONES))
            case "together":
                self._affinity.append(self._term(keys.ZONE))
            case "apart":
                self._count = min(self._count, len(ZONES))
                self._anti_affinity.append(self._term(keys.ZONE))
            case "near" if self._earlier:
                # A pod that wants company of others besides its own kind may not begin anywhere.
                self._waits_for_others = True
                self._affinity.append(self._term(keys.ZONE, self._draw.choice(self._earlier)))

    def _by_capacity_type(self) -> None:
        match self._draw.choice(("", "", "", "pin", "spread")):
            case "pin":
                allowed = CAPACITY_TYPES if self._ground.has_spot else (keys.ON_DEMAND,)
                self._selector[keys.CAPACITY_TYPE] = self._draw.choice(allowed)
            case "spread" if self._ground.has_spot:
                self._spread(keys.CAPACITY_TYPE, len(CAPACITY_TYPES))

    def _by_rack(self) -> None:
        key = rack_key(self._ground.run)
        match self._draw.choice(("", "", "", "", "pin", "spread", "together")):
            case "pin":
                self._selector[key] = self._draw.choice(RACKS)
            case "spread":
                self._spread(key, len(RACKS), ignores_affinity=self._one_in(3))
            case "together" if not self._waits_for_others:
                self._affinity.append(self._term(key))

    def _by_node(self) -> None:
        match self._draw.choice(("", "", "", "spread", "apart", "apart from", "port")):
            case "spread":
                self._spread(keys.HOSTNAME, 3)
            case "apart":
                self._anti_affinity.append(self._term(keys.HOSTNAME))
            case "apart from" if self._earlier:
                self._anti_affinity.append(self._term(keys.HOSTNAME, self._draw.choice(self._earlier)))
            case "port":
                port: dict[str, Any] = {"containerPort": 80, "hostPort": self._draw.choice((8080, 9090))}
                self._ports.append(port | ({"protocol": "UDP"} if self._one_in(3) else {}))

    def _by_type(self) -> None:
        """Node affinity's ORed terms that at least one type of the pools can meet."""
        choices: list[list[list[dict[str, Any]]]] = [
            [],
            [],
            [[_expression(_CPU, "Gt", "7")]],
            [[_expression(_CPU, "Lt", "49")]],
            [[_expression(keys.ARCH, "In", "arm64")], [_expression(keys.ZONE, "In", *ZONES)]],
            [[_expression(keys.ZONE, "NotIn", "us-east-1f"), _expression(_CPU, "Gt", "3")]],
        ]
        if self._gpus:
            choices += [
                [[_expression(_FAMILY, "NotIn", "g4dn")]],
                [[_expression(_GPU_NAME, "Exists")]],
                [[_expression(_GPU_NAME, "In", "a10g")], [_expression(_GPU_NAME, "In", "t4")]],
                [[_expression("nvidia.com/gpu.product", "In", "NVIDIA-L4", "NVIDIA-A10G")]],
            ]
        else:
            choices.append([[_expression(_GPU_NAME, "DoesNotExist")]])
        self._terms = self._draw.choice(choices)
        if self._ground.for_team and self._one_in(2):
            self._selector[TEAM] = "ml"

    def _wishes(self) -> None:
        """What pods would rather have, and who goes first."""
        affinity: dict[str, Any] = {}
        node_affinity: dict[str, Any] = {}
        if self._terms:
            terms = [{"matchExpressions": term} for term in self._terms]
            node_affinity[REQUIRED] = {"nodeSelectorTerms": terms}
        if self._one_in(4):
            wish = self._draw.choice(
                (
                    _expression(keys.ZONE, "In", ZONES[1]),
                    _expression(_FAMILY, "In", "g6", "m5"),
                    _expression("no", "Exists"),
                )
            )
            node_affinity[PREFERRED] = [
                {"weight": self._draw.randint(1, 100), "preference": {"matchExpressions": [wish]}}
            ]
        if node_affinity:
            affinity["nodeAffinity"] = node_affinity
        if self._affinity:
            affinity["podAffinity"] = {REQUIRED: self._affinity}
        anti: dict[str, Any] = {REQUIRED: self._anti_affinity} if self._anti_affinity else {}
        if self._one_in(6):
            anti[PREFERRED] = [{"weight": 50, "podAffinityTerm": self._term(keys.HOSTNAME)}]
        if anti:
            affinity["podAntiAffinity"] = anti
        if affinity:
            self._spec["affinity"] = affinity
        if self._spreads:
            self._spec["topologySpreadConstraints"] = self._spreads
        if self._one_in(4):
            self._spec["priorityClassName"] = self._draw.choice(sorted(PRIORITIES))

    def _spread(self, key: str, domains: int, *, ignores_affinity: bool = False) -> None:
        selected = {RUN: self._ground.run} if self._one_in(5) else {"app": self._made.name}
        spread: dict[str, Any] = {
            "topologyKey": key,
            "maxSkew": self._draw.choice((1, 1, 2)),
            "whenUnsatisfiable": "ScheduleAnyway" if self._one_in(6) else "DoNotSchedule",
            "labelSelector": {"matchLabels": selected},
        }
        if self._one_in(3):
            spread["matchLabelKeys"] = ["version"]
        if self._one_in(3) and spread["whenUnsatisfiable"] == "DoNotSchedule":
            spread["minDomains"] = self._draw.randint(1, domains)
        if self._one_in(4):
            spread["nodeTaintsPolicy"] = "Honor"
        if ignores_affinity:
            spread["nodeAffinityPolicy"] = "Ignore"
        self._made.is_spread = True
        self._spreads.append(spread)

    def _term(self, key: str, other: Group | None = None) -> dict[str, Any]:
        """Of pods of the own group or an earlier one, in its namespace, however that is named."""
        named = other or self._made
        term: dict[str, Any] = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": named.name}}}
        match self._draw.choice(("", "", "names", "selector")):
            case "names":
                term["namespaces"] = sorted({named.namespace, self._ground.namespaces[1]})
            case "selector":
                term["namespaceSelector"] = {"matchLabels": {RUN: self._ground.run}}
            case _ if named.namespace != self._made.namespace:
                term["namespaces"] = [named.namespace]
        return term

    def _containers(self) -> list[dict[str, Any]]:
        requests = {"cpu": self._draw.choice(["250m", "1", "2500m", "3"])}
        requests["memory"] = self._draw.choice(["512Mi", "3Gi", "9Gi"])
        if self._one_in(5):
            requests["ephemeral-storage"] = self._draw.choice(["1Gi", "4Gi"])
        if self._gpus:
            requests[GPU] = str(self._gpus)
        main = _container("main", requests) | ({"ports": self._ports} if self._ports else {})
        return [main, *([_container("side", {"cpu": "100m", "memory": "64Mi"})] if self._one_in(5) else [])]

    def _init_containers(self) -> list[dict[str, Any]]:
        made = []
        if self._one_in(6):
            made.append(_container("sidecar", {"cpu": "200m", "memory": "256Mi"}) | {"restartPolicy": "Always"})
        if self._one_in(6):
            made.append(_container("setup", {"cpu": "4", "memory": "1Gi"}))
        return made

    def _pod(self, replica: int, volume: str | None, zone: str) -> dict[str, Any]:
        name = f"{self._made.name}-{replica}"
        tolerations: list[dict[str, str]] = [{"key": GPU, "operator": "Exists"}] if self._gpus else []
        if self._ground.for_team:
            tolerations.append({"key": TEAM, "operator": "Equal", "value": "ml", "effect": "NoSchedule"})
        spec = {**self._spec, "nodeSelector": self._selector, "tolerations": tolerations}
        if volume is not None:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
            self._made.claims.append(_claim(name, self._made.namespace, self._ground.run, is_bound=volume == "bound"))
            if volume == "bound":
                self._made.volumes.append(bound_volume(name, self._made.namespace, self._ground.run, zone))
        metadata = {"name": name, "namespace": self._made.namespace, "labels": dict(self._labels)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _one_in(self, count: int) -> bool:
        return self._draw.randrange(count) == 0


def waiting_class(run: str) -> dict[str, Any]:
    """The run's storage class, whose volumes are made where their pods go."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": run, "labels": {RUN: run}},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def bound_volume(claim: str, namespace: str, run: str, zone: str, storage_class: str = "") -> dict[str, Any]:
    """A PersistentVolume of one zone, made for the claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{namespace}-{claim}", "labels": {RUN: run}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{namespace}-{claim}"},
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": claim},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [_expression(keys.ZONE, "In", zone)]}]}
            },
        },
    }


def _claim(name: str, namespace: str, run: str, *, is_bound: bool) -> dict[str, Any]:
    named = {"volumeName": f"pv-{namespace}-{name}", "storageClassName": ""} if is_bound else {"storageClassName": run}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**asked, **named}}


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _container(name: str, requests: Mapping[str, str]) -> dict[str, Any]:
    # Extended resources must be limited to what they request; the others are left open.
    limits = {GPU: requests[GPU]} if GPU in requests else {}
    return {"name": name, "image": "model:1", "resources": {"requests": dict(requests), "limits": limits}}
