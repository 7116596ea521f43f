"""For every demand of Karpenter's definitions an object that breaks it, and nothing else where that can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.cluster.karpenter_bases import BASES, BY_ALIAS, BY_ID, BY_TAGS, DYNAMIC, IMPLEMENTED, STATIC, WHOLE, Object
from tests.cluster.karpenter_crds import Absent, Demand, at, put

_OF_ANOTHER_TYPE: Mapping[str, tuple[Any, ...]] = {
    "string": (7, ["x"]),
    "integer": ("7", 1.5),
    "boolean": ("true", 1),
    "array": ("x", {"a": "b"}),
    "object": ("x", ["x"]),
}
_OF_NO_SHAPE = ("!", "", "nonsense and more", "-x-", "a/b/c", 12.5)
_TAGS = {"a": "b"}
_REQUIREMENTS = "spec.template.spec.requirements"
_LABELS = "spec.template.metadata.labels"

# What only a change of an object that exists can break. A policy file is read without what it was before.
OF_CHANGES = (
    "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
    "nodeClassRef.group is immutable",
    "nodeClassRef.kind is immutable",
)


def violations(demand: Demand) -> list[Object]:
    """Objects that break the demand; one at least, or the test that asks fails."""
    if demand.keyword == "rule":
        return [put(base, tuple(path.split(".")), value) for base, path, value in _BREAKING_RULES[_rule_key(demand)]]
    base = _base_with(demand)
    broken = list(_BREAKING[demand.keyword](demand, base))
    assert broken, f"nothing breaks {demand}"
    return broken


def null_at(demand: Demand) -> Object:
    """An object whose part at the demand's path is null."""
    return put(_base_with(demand), demand.path, None)


def _base_with(demand: Demand) -> Object:
    bases = (*IMPLEMENTED[demand.kind], *BASES[demand.kind])
    found = next((base for base in bases if at(base, demand.path) is not None), None)
    assert found is not None, f"no object has the part of {demand}; give it to one in karpenter_bases.py"
    return found


def _rule_key(demand: Demand) -> tuple[str, str]:
    return ".".join(demand.path), demand.value


def _of_another_type(demand: Demand, base: Object) -> Iterator[Object]:
    yield from (put(base, demand.path, value) for value in _OF_ANOTHER_TYPE[demand.value])


def _without(demand: Demand, base: Object) -> Iterator[Object]:
    yield put(base, (*demand.path, demand.value), Absent)
    yield put(base, (*demand.path, demand.value), None)


def _of_no_shape(demand: Demand, base: Object) -> Iterator[Object]:
    wrong = [value for value in _OF_NO_SHAPE if not re.search(demand.value, str(value))]
    yield from (put(base, demand.path, value) for value in wrong[:2])


def _repeated(demand: Demand, base: Object) -> Iterator[Object]:
    items = at(base, demand.path)
    count = demand.value + 1 if demand.keyword == "maxItems" else 2
    yield put(base, demand.path, [_named(item, number) for number, item in enumerate(items[:1] * count)])


def _named(item: Any, number: int) -> Any:
    """A volume of its own: two on one device would be wrong in another way."""
    return {**item, "deviceName": f"/dev/xvd{number}", "rootVolume": False} if "deviceName" in item else item


def _more_entries(demand: Demand, base: Object) -> Iterator[Object]:
    yield put(base, demand.path, {f"key-{number}": "value" for number in range(demand.value + 1)})


def _set_to(value: Callable[[Any], Any]) -> Callable[[Demand, Object], Iterator[Object]]:
    def broken(demand: Demand, base: Object) -> Iterator[Object]:
        yield put(base, demand.path, value(demand.value))

    return broken


_BREAKING: Mapping[str, Callable[[Demand, Object], Iterator[Object]]] = {
    "type": _of_another_type,
    "required": _without,
    "enum": _set_to(lambda known: known[0].swapcase()),
    "pattern": _of_no_shape,
    "minimum": _set_to(lambda least: least - 1),
    "maximum": _set_to(lambda most: most + 1),
    "minLength": _set_to(lambda least: "x" * (least - 1)),
    "maxLength": _set_to(lambda most: "x" * (most + 1)),
    "minItems": _set_to(lambda least: []),
    "maxItems": _repeated,
    "maxProperties": _more_entries,
    "format": _set_to(lambda name: {"int32": 2**31, "int64": 2**63, "date-time": "yesterday"}[name]),
    "set": _repeated,
    "unknown": lambda demand, base: iter([put(base, (*demand.path, "nonsense"), "x")]),
}


def _ebs(**part: Any) -> list[Object]:
    return [{"deviceName": "/dev/xvda", "ebs": part}]


def _needs(operator: str, *values: str, **more: Any) -> list[Object]:
    return [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": operator, "values": list(values), **more}]


def _of_key(key: str) -> list[Object]:
    return [{"key": key, "operator": "Exists"}]


def _card(device: int, card: int, kind: str) -> Object:
    return {"deviceIndex": device, "networkCardIndex": card, "interfaceType": kind}


def _alias_of(alias: str, family: str) -> tuple[Object, str, Any]:
    return put(BY_ALIAS, ("spec", "amiFamily"), family), "spec.amiSelectorTerms", [{"alias": alias}]


_EMPTY_TAGS = "empty tag keys or values aren't supported"
_NO_TERM = {
    "subnetSelectorTerms": "expected at least one, got none, ['tags', 'id']",
    "securityGroupSelectorTerms": "expected at least one, got none, ['tags', 'id', 'name']",
    "amiSelectorTerms": "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
    "capacityReservationSelectorTerms": "expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']",
}
_NOT_WITH = "is mutually exclusive, cannot be set with a combination of other fields in"
_FAMILIES = (
    ("an", "AL2"),
    ("an", "AL2023"),
    ("a", "Bottlerocket"),
    ("a", "Windows2019"),
    ("a", "Windows2022"),
    ("a", "Windows2025"),
)
_MORE_OF_IMAGES: tuple[Object, ...] = (
    {"tags": _TAGS},
    {"tags": {}},
    {"name": "x"},
    {"owner": "self"},
    {"alias": "al2023@latest"},
)
_MORE_OF_GROUPS: tuple[Object, ...] = ({"tags": _TAGS}, {"tags": {}}, {"name": "x"})
_RESTRICTED = (
    (
        'label domain "karpenter.sh" is restricted',
        ("karpenter.sh/mine", "karpenter.sh", "mykarpenter.sh/x", "a.karpenter.sh/x"),
    ),
    ('label "karpenter.sh/nodepool" is restricted', ("karpenter.sh/nodepool",)),
    ('label "kubernetes.io/hostname" is restricted', ("kubernetes.io/hostname",)),
    (
        'label domain "karpenter.k8s.aws" is restricted',
        ("karpenter.k8s.aws/mine", "mykarpenter.k8s.aws/x", "a.karpenter.k8s.aws/x"),
    ),
)
# By the rule's place and message: the object that breaks it, as a base and the one part that differs.
_BREAKING_RULES: Mapping[tuple[str, str], list[tuple[Object, str, Any]]] = {
    ("spec", "only 'limits.nodes' is supported on static NodePools"): [
        (STATIC, "spec.limits", {"cpu": "4"}),
        (STATIC, "spec.limits", {"cpu": "4", "nodes": "4"}),
    ],
    ("spec", "'weight' is not supported on static NodePools"): [(STATIC, "spec.weight", 5)],
    ("spec.disruption.budgets", "'schedule' must be set with 'duration'"): [
        (DYNAMIC, "spec.disruption.budgets", [{"nodes": "1", "schedule": "@daily"}]),
        (DYNAMIC, "spec.disruption.budgets", [{"nodes": "1", "duration": "1h"}]),
    ],
    **{
        (f"spec.template.spec.nodeClassRef.{name}", f"{name} may not be empty"): [
            (DYNAMIC, f"spec.template.spec.nodeClassRef.{name}", "")
        ]
        for name in ("group", "kind", "name")
    },
    **{(_LABELS, message): [(DYNAMIC, _LABELS, {key: "x"}) for key in keys] for message, keys in _RESTRICTED},
    **{
        (f"{_REQUIREMENTS}.[].key", message): [(DYNAMIC, _REQUIREMENTS, _of_key(key)) for key in keys]
        for message, keys in _RESTRICTED
    },
    (_REQUIREMENTS, "requirements with operator 'In' must have a value defined"): [
        (DYNAMIC, _REQUIREMENTS, _needs("In")),
        (DYNAMIC, f"{_REQUIREMENTS}.[].values", Absent),
    ],
    (_REQUIREMENTS, "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value"): [
        (DYNAMIC, _REQUIREMENTS, _needs(operator, *values))
        for operator, values in (
            ("Gt", ("-1",)),
            ("Lt", ("1", "2")),
            ("Gte", ("one",)),
            ("Lte", ()),
            ("Gt", ("1.5",)),
            ("Gt", ("99999999999999999999",)),
        )
    ],
    (
        _REQUIREMENTS,
        "requirements with 'minValues' must have at least that many values specified in the 'values' field",
    ): [(DYNAMIC, _REQUIREMENTS, _needs("In", "1", minValues=2))],
    ("spec", "must specify exactly one of ['role', 'instanceProfile']"): [
        (BY_ID, "spec.role", "gpu-node"),
        (BY_ID, "spec.instanceProfile", Absent),
    ],
    **{
        (
            "spec",
            f"if set, amiFamily must be '{family}' or 'Custom' when using {article} {family} alias",
        ): [_alias_of(f"{family.lower()}@latest", "AL2" if family != "AL2" else "AL2023")]
        for article, family in _FAMILIES
    },
    ("spec", "must specify amiFamily if amiSelectorTerms does not contain an alias"): [
        (BY_TAGS, "spec.amiFamily", Absent)
    ],
    **{("spec." + field, message): [(WHOLE, f"spec.{field}", [{}])] for field, message in _NO_TERM.items()},
    ("spec.amiSelectorTerms", f"'id' {_NOT_WITH} amiSelectorTerms"): [
        (BY_TAGS, "spec.amiSelectorTerms", [{"id": "ami-0123", **more}]) for more in _MORE_OF_IMAGES
    ],
    ("spec.amiSelectorTerms", f"'alias' {_NOT_WITH} amiSelectorTerms"): [
        (BY_ALIAS, "spec.amiSelectorTerms", [{"alias": "al2023@latest", **more}])
        for more in ({"tags": _TAGS}, {"name": "x"}, {"owner": "self"})
    ],
    (
        "spec.amiSelectorTerms",
        "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
    ): [(BY_ALIAS, "spec.amiSelectorTerms", [{"alias": "al2023@latest"}, {"id": "ami-0123"}])],
    ("spec.amiSelectorTerms.[].alias", "'alias' is improperly formatted, must match the format 'family@version'"): [
        (BY_ALIAS, "spec.amiSelectorTerms", [{"alias": alias}]) for alias in ("al2023", "al2023@", "")
    ],
    (
        "spec.amiSelectorTerms.[].alias",
        "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', "
        "'windows2022', 'windows2025'",
    ): [(BY_ALIAS, "spec.amiSelectorTerms", [{"alias": alias}]) for alias in ("al1@latest", "AL2023@latest")],
    ("spec.amiSelectorTerms.[].alias", "windows families may only specify version 'latest'"): [
        (BY_ALIAS, "spec.amiSelectorTerms", [{"alias": "windows2022@v1"}])
    ],
    **{
        (f"spec.{field}.[].tags", _EMPTY_TAGS): [
            (WHOLE, f"spec.{field}", [{"tags": {"a": ""}}]),
            (WHOLE, f"spec.{field}", [{"tags": {"": "b"}}]),
        ]
        for field in _NO_TERM
    },
    ("spec.blockDeviceMappings", "must have only one blockDeviceMappings with rootVolume"): [
        (
            BY_TAGS,
            "spec.blockDeviceMappings",
            [
                {"deviceName": name, "rootVolume": True, "ebs": {"volumeSize": "9Gi"}}
                for name in ("/dev/xvda", "/dev/xvdb")
            ],
        )
    ],
    ("spec.blockDeviceMappings.[].ebs", "snapshotID or volumeSize must be defined"): [
        (BY_TAGS, "spec.blockDeviceMappings", _ebs(volumeType="gp3"))
    ],
    ("spec.blockDeviceMappings.[].ebs", "snapshotID must be set when volumeInitializationRate is set"): [
        (BY_TAGS, "spec.blockDeviceMappings", _ebs(volumeSize="9Gi", volumeInitializationRate=200))
    ],
    (
        "spec.capacityReservationSelectorTerms",
        "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
    ): [(WHOLE, "spec.capacityReservationSelectorTerms", [{"id": "cr-0123", "ownerID": "123456789012"}])],
    (
        "spec.connectionTracking",
        "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
    ): [(WHOLE, "spec.connectionTracking", {})],
    ("spec.instanceProfile", "instanceProfile cannot be empty"): [(BY_ID, "spec.instanceProfile", "")],
    ("spec.role", "role cannot be empty"): [(BY_TAGS, "spec.role", "")],
    (
        "spec.networkInterfaces",
        "networkInterfaces must include a primary interface with interfaceType='interface'",
    ): [(WHOLE, "spec.networkInterfaces", [_card(1, 1, "interface")])],
    (
        "spec.networkInterfaces",
        "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one "
        "efa device per network card",
    ): [(WHOLE, "spec.networkInterfaces", [_card(0, 0, "interface")] * 2)],
    ("spec.placementGroupSelector", "expected at least one, got none, ['name', 'id']"): [
        (WHOLE, "spec.placementGroupSelector", {})
    ],
    ("spec.placementGroupSelector", "'name' and 'id' are mutually exclusive"): [
        (WHOLE, "spec.placementGroupSelector", {"name": "x", "id": "pg-0123"})
    ],
    **{
        (f"spec.{field}", f"{field} cannot be empty"): [(BY_TAGS, f"spec.{field}", [])]
        for field in ("securityGroupSelectorTerms", "subnetSelectorTerms")
    },
    ("spec.securityGroupSelectorTerms", f"'id' {_NOT_WITH} a security group selector term"): [
        (BY_TAGS, "spec.securityGroupSelectorTerms", [{"id": "sg-0123", **more}]) for more in _MORE_OF_GROUPS
    ],
    ("spec.securityGroupSelectorTerms", f"'name' {_NOT_WITH} a security group selector term"): [
        (BY_TAGS, "spec.securityGroupSelectorTerms", [{"name": "x", "tags": _TAGS}]),
        (BY_TAGS, "spec.securityGroupSelectorTerms", [{"name": "", "tags": _TAGS}]),
    ],
    ("spec.subnetSelectorTerms", f"'id' {_NOT_WITH} a subnet selector term"): [
        (BY_TAGS, "spec.subnetSelectorTerms", [{"id": "subnet-0123", "tags": _TAGS}])
    ],
    ("spec.tags", "empty tag keys aren't supported"): [(BY_TAGS, "spec.tags", {"": "x"})],
    ("spec.tags", "tag contains a restricted tag matching kubernetes.io/cluster/"): [
        (BY_TAGS, "spec.tags", {"kubernetes.io/cluster/prod": "owned"})
    ],
    **{
        ("spec.tags", f"tag contains a restricted tag matching {key}"): [(BY_TAGS, "spec.tags", {key: "x"})]
        for key in (
            "eks:eks-cluster-name",
            "karpenter.sh/nodepool",
            "karpenter.sh/nodeclaim",
            "karpenter.k8s.aws/ec2nodeclass",
        )
    },
}
