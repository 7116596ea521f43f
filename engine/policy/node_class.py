"""An EC2NodeClass file's object as a value."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from engine.model import labels
from engine.model.policy import AmiFamily, BlockDevice, Kubelet, MetadataOptions, NodeClass, SelectorTerm
from engine.model.quantity import Resources
from engine.model.reservation import ReservationTerm
from engine.policy.class_spellings import modernise_node_class
from engine.policy.findings import ObjectFindings
from engine.policy.located import Path
from engine.policy.node_class_schema import (
    FAMILY_BY_ALIAS,
    AmiTermPart,
    BlockDevicePart,
    EbsPart,
    KubeletPart,
    NodeClassPart,
    NodeClassSpecPart,
    ReservationTermPart,
    SecurityGroupTermPart,
    SubnetTermPart,
)
from engine.policy.schema import validated, written_name
from engine.policy.without_effect import warn_of_class_annotations

_SPEC: Path = ("spec",)
_MAX_TERMS, _MAX_TAGS, _MAX_DEVICES = 30, 20, 50
# Fields of a term that select nothing by themselves.
_NARROWING = ("owner", "owner_id")
_ROOT_DEVICE = "/dev/xvda"
# Karpenter's default for Amazon Linux (pkg/providers/amifamily of its AWS provider).
_DEFAULT_DEVICE = BlockDevice(device_name=_ROOT_DEVICE, volume_size_gib=20, encrypted=True, is_root=True)
_RESERVED_TAGS = ("eks:eks-cluster-name", labels.TAG_NODE_POOL, "karpenter.sh/nodeclaim", labels.NODE_CLASS)
_RESERVED_TAG_PREFIXES = ("kubernetes.io/cluster", "nodewright.dev/", "aws:")


@frozen
class ClassRead:
    """A node class, and whether its file sets the kubelet itself."""

    node_class: NodeClass
    findings: ObjectFindings
    sets_kubelet: bool


def read_node_class(findings: ObjectFindings, version: str) -> ClassRead | None:
    """The node class, or None when too much of it is wrong; all that is wrong goes to ``findings``."""
    modernise_node_class(findings, version)
    part = validated(NodeClassPart, findings)
    if part is None:
        return None
    spec = part.spec
    family = _family(spec, findings)
    _check_terms("subnetSelectorTerms", spec.subnet_selector_terms, findings)
    _check_terms("securityGroupSelectorTerms", spec.security_group_selector_terms, findings)
    _check_tags(spec.tags, findings)
    warn_of_class_annotations(part.metadata.annotations, findings)
    if spec.role is not None and spec.instance_profile is not None:
        message = "role and instanceProfile are both here; a node has one of them"
        findings.error_at_key((*_SPEC, "instanceProfile"), "contradiction", message, "remove one of them")
    node_class = NodeClass(
        name=part.metadata.name,
        position=findings.at(("metadata", "name")),
        ami_family=family,
        ami_selector_terms=_terms(spec.ami_selector_terms or ()),
        subnet_selector_terms=_terms(spec.subnet_selector_terms),
        security_group_selector_terms=_terms(spec.security_group_selector_terms),
        role=spec.role,
        instance_profile=spec.instance_profile,
        user_data=spec.user_data,
        tags=spec.tags,
        block_devices=_block_devices(spec.block_device_mappings, family, findings),
        metadata_options=_metadata_options(spec),
        kubelet=kubelet_value(spec.kubelet),
        instance_store_raid0=spec.instance_store_policy is not None,
        associate_public_ip_address=spec.associate_public_ip_address,
        detailed_monitoring=spec.detailed_monitoring,
        capacity_reservation_selector_terms=_reservation_terms(spec.capacity_reservation_selector_terms, findings),
    )
    return ClassRead(node_class, findings, sets_kubelet=spec.kubelet != KubeletPart())


def _family(spec: NodeClassSpecPart, findings: ObjectFindings) -> AmiFamily:
    """The family, deduced from the alias where there is one. Karpenter's rules for the terms are checked here."""
    path: Path = (*_SPEC, "amiSelectorTerms")
    terms = spec.ami_selector_terms or []
    aliases = [(index, term.alias) for index, term in enumerate(terms) if term.alias is not None]
    if not terms and not findings.lacks_part(path):
        hint = "write amiSelectorTerms: [{alias: al2023@latest}], or name an image by id"
        findings.error_at_key(path, "missing-field", "spec.amiSelectorTerms is missing: no image to boot from", hint)
    _check_terms("amiSelectorTerms", terms, findings)
    if aliases and len(terms) > 1:
        message = "an alias names the image alone; there may be no other term beside it"
        findings.error((*path, aliases[0][0]), "contradiction", message, "keep the alias or the other terms")
    if not aliases:
        if spec.ami_family is None and terms and not findings.lacks_part(_SPEC):
            message = "spec.amiFamily is missing: without an alias nothing says how the node joins the cluster"
            findings.error_at_key(path, "missing-field", message, "add amiFamily: AL2023, AL2 or Custom")
        return spec.ami_family or AmiFamily.CUSTOM
    deduced = FAMILY_BY_ALIAS[aliases[0][1].partition("@")[0]]
    if spec.ami_family not in (None, deduced, AmiFamily.CUSTOM):
        message = f"the alias {aliases[0][1]} is of {deduced.value}, not of amiFamily {spec.ami_family.value}"
        findings.error((*_SPEC, "amiFamily"), "contradiction", message, f"write amiFamily: {deduced.value}")
    return spec.ami_family or deduced


_TermPart = SubnetTermPart | SecurityGroupTermPart | AmiTermPart | ReservationTermPart


def _check_terms(field: str, terms: Sequence[_TermPart], findings: ObjectFindings) -> None:
    path: Path = (*_SPEC, field)
    if len(terms) > _MAX_TERMS:
        findings.error(path, "too-many", f"{len(terms)} terms; Karpenter takes {_MAX_TERMS} at most")
    if not terms and field != "amiSelectorTerms" and not findings.lacks_part(path):
        message = f"{field} has no term, so nothing can be selected"
        findings.error_at_key(
            path, "missing-field", message, "add a term such as {tags: {karpenter.sh/discovery: NAME}}"
        )
    for index, term in enumerate(terms):
        _check_term(term, (*path, index), findings)


def _check_term(term: _TermPart, path: Path, findings: ObjectFindings) -> None:
    says_something = any(getattr(term, name) for name in type(term).model_fields if name not in _NARROWING)
    if not says_something and not findings.lacks_part(path):
        findings.error(path, "bad-selector", "this term selects nothing", "give it tags or an id")
    # A security group's name stands alone; an image's may come with its owner and tags.
    alone = {"id", "alias", "name"} if isinstance(term, SecurityGroupTermPart) else {"id", "alias", "ssm_parameter"}
    # An empty field that stands there counts, as it does for Karpenter.
    said = term.model_fields_set
    for name in sorted(said & alone):
        if len(said) > 1:
            others = ", ".join(written_name(term, other) for other in sorted(said - {name}))
            message = f"{written_name(term, name)} names one thing alone; it cannot be together with {others}"
            findings.error(path, "bad-selector", message, "make them terms of their own")
            break
    if len(term.tags) > _MAX_TAGS:
        findings.error((*path, "tags"), "too-many", f"{len(term.tags)} tags; Karpenter takes {_MAX_TAGS} at most")
    for key, value in term.tags.items():
        if not key or not value:
            message = "a tag of a selector needs a key and a value"
            findings.error((*path, "tags", key), "bad-selector", message, 'write "*" for any value')


def _terms(parts: Sequence[_TermPart]) -> tuple[SelectorTerm, ...]:
    return tuple(SelectorTerm(**{name: getattr(part, name) for name in type(part).model_fields}) for part in parts)


def _reservation_terms(
    parts: Sequence[ReservationTermPart] | None, findings: ObjectFindings
) -> tuple[ReservationTerm, ...]:
    if parts is None:
        return ()
    _check_terms("capacityReservationSelectorTerms", parts, findings)
    return tuple(ReservationTerm(each.id, each.tags, each.owner_id, each.instance_match_criteria) for each in parts)


def _check_tags(tags: dict[str, str], findings: ObjectFindings) -> None:
    for key in tags:
        if key in _RESERVED_TAGS or key.startswith(_RESERVED_TAG_PREFIXES):
            message = f"the tag {key} is set by the engine or by AWS; a node class may not set it"
            findings.error_at_key((*_SPEC, "tags", key), "reserved-tag", message, "remove it")
        elif not key or len(key) > 128 or len(tags[key]) > 256:
            message = "a tag's key has 1 to 128 characters, its value 256 at most"
            findings.error_at_key((*_SPEC, "tags", key), "bad-value", message)


def _block_devices(
    parts: Sequence[BlockDevicePart], family: AmiFamily, findings: ObjectFindings
) -> tuple[BlockDevice, ...]:
    path: Path = (*_SPEC, "blockDeviceMappings")
    if len(parts) > _MAX_DEVICES:
        findings.error(path, "too-many", f"{len(parts)} volumes; Karpenter takes {_MAX_DEVICES} at most")
    names = [part.device_name for part in parts]
    for index, part in enumerate(parts):
        _check_volume(part.ebs, (*path, index, "ebs"), findings)
        if part.device_name in names[:index]:
            message = f"the device {part.device_name} is here twice"
            findings.error((*path, index, "deviceName"), "duplicate-name", message, "keep one of them")
    root = _root_index(parts, family, path, findings)
    if not parts:
        return () if family is AmiFamily.CUSTOM else (_DEFAULT_DEVICE,)
    if root is None and family is not AmiFamily.CUSTOM:
        message = (
            f"no volume is {_ROOT_DEVICE}, which {family.value} boots from: {', '.join(names)} is attached besides a"
            " root volume of the image's own size"
        )
        findings.warning((*path, 0, "deviceName"), "not-the-root-device", message, f"write deviceName: {_ROOT_DEVICE}")
    return tuple(_block_device(part, index == root) for index, part in enumerate(parts))


def _root_index(
    parts: Sequence[BlockDevicePart], family: AmiFamily, path: Path, findings: ObjectFindings
) -> int | None:
    """The volume that pods' ephemeral storage is on, as Karpenter tells it."""
    marked = [index for index, part in enumerate(parts) if part.root_volume]
    if len(marked) > 1:
        findings.error((*path, marked[1]), "contradiction", "two volumes say rootVolume: true", "keep one")
    if marked:
        return marked[0]
    if family is AmiFamily.CUSTOM:
        return len(parts) - 1 if parts else None
    return next((index for index, part in enumerate(parts) if part.device_name == _ROOT_DEVICE), None)


def _check_volume(ebs: EbsPart, path: Path, findings: ObjectFindings) -> None:
    if ebs.volume_size is None and ebs.snapshot_id is None and not findings.lacks_part(path):
        message = "a volume needs volumeSize or snapshotID"
        findings.error_at_key(path, "missing-field", message, "add volumeSize: 100Gi")
    if ebs.throughput is not None and ebs.volume_type != "gp3":
        message = f"EC2 takes throughput for gp3 only, and refuses to launch with it on {ebs.volume_type}"
        findings.warning((*path, "throughput"), "bad-volume", message, "remove it, or use gp3")
    if ebs.iops is not None and ebs.volume_type not in ("gp3", "io1", "io2"):
        message = f"EC2 takes iops for gp3, io1 and io2 only, and refuses to launch with it on {ebs.volume_type}"
        findings.warning((*path, "iops"), "bad-volume", message, "remove it, or use gp3")
    if ebs.iops is None and ebs.volume_type in ("io1", "io2"):
        message = f"EC2 wants iops with {ebs.volume_type}, and refuses to launch without"
        findings.warning((*path, "volumeType"), "bad-volume", message, "add iops, or use gp3")


def _block_device(part: BlockDevicePart, is_root: bool) -> BlockDevice:
    ebs = part.ebs
    return BlockDevice(
        device_name=part.device_name,
        volume_size_gib=ebs.volume_size,
        volume_type=ebs.volume_type,
        iops=ebs.iops,
        throughput_mib_per_s=ebs.throughput,
        encrypted=ebs.encrypted,
        kms_key_id=ebs.kms_key_id,
        snapshot_id=ebs.snapshot_id,
        delete_on_termination=ebs.delete_on_termination,
        is_root=is_root,
    )


def _metadata_options(spec: NodeClassSpecPart) -> MetadataOptions:
    part = spec.metadata_options
    return MetadataOptions(
        http_endpoint=part.http_endpoint.value,
        http_protocol_ipv6=part.http_protocol_ipv6.value,
        http_put_response_hop_limit=part.http_put_response_hop_limit,
        http_tokens=part.http_tokens,
    )


def kubelet_value(part: KubeletPart) -> Kubelet:
    """A class's kubelet settings, also where v1beta1 keeps them in the pool."""
    return Kubelet(
        max_pods=part.max_pods,
        pods_per_core=part.pods_per_core,
        system_reserved=Resources.parse(part.system_reserved),
        kube_reserved=part.kube_reserved,
        eviction_hard=part.eviction_hard,
        cluster_dns=tuple(part.cluster_dns),
    )
