"""How many EBS volumes pods can have on a node of an instance type, before its CSI driver has said so.

Sources, read in November 2026: "Amazon EBS volume limits for Amazon EC2 instances" in the EC2 User Guide, for which
types have a limit of their own and which share 28 attachments between volumes, network interfaces, instance store
volumes and accelerators; EbsInfo.MaximumEbsAttachments of EC2's DescribeInstanceTypes, as aws-ebs-csi-driver tabulates
it, for what is left of the 28 on each type; that driver, for what it takes off before it tells kubelet: the interfaces
that are attached when it starts, and the volumes that the node has already. A real node's CSINode overrides all of it.
"""

from __future__ import annotations

import re

from engine.catalog.volumes import node_volumes
from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.policy import NodeClass

EBS_DRIVER = "ebs.csi.aws.com"

# Families whose volumes have attachments of their own, as many as the size says.
_DEDICATED = re.compile(
    r"[cmr]7[ai]|[cm]7i-flex|r7iz|[cmr]8(?:a|g|gb|gd|gn|i|i-flex)|x8(?:aedz|g|i)|i7ie?|i8ge?|f2|g6[ef]?|g7e|gr6f?"
    r"|u7i[nh]?-[0-9]+tb"
)
# The least size in xlarges, and the limit from there on; smaller ones have 32.
_DEDICATED_BY_SIZE = ((48, 128), (32, 88), (24, 64), (16, 48))
_DEDICATED_LEAST = 32
_DEDICATED_METAL = 39
# Types with a limit of their own that the size does not tell.
_DEDICATED_TYPES = {
    "c8gn.48xlarge": 64,
    "m8gn.48xlarge": 64,
    "r8gn.48xlarge": 64,
    "p4d.24xlarge": 28,
    "p4de.24xlarge": 28,
    "p5.4xlarge": 32,
    "p5.48xlarge": 64,
    "p5e.48xlarge": 64,
    "p5en.48xlarge": 64,
    "p6-b200.48xlarge": 64,
    "p6-b300.48xlarge": 64,
    "trn2.3xlarge": 32,
    "trn2.48xlarge": 64,
}
# What the first interface, instance store volumes and accelerators leave of the shared attachments, by type or family.
_SHARED = {
    "dl1": 28,
    "dl2q": 19,
    "g4ad": 25,
    "g4ad.8xlarge": 24,
    "g4ad.16xlarge": 21,
    "g4dn": 25,
    "g4dn.12xlarge": 22,
    "g4dn.metal": 31,
    "g5": 25,
    "g5.12xlarge": 22,
    "g5.24xlarge": 22,
    "g5.48xlarge": 9,
    "g5g": 25,
    "g5g.metal": 31,
    "inf1": 26,
    "inf1.6xlarge": 23,
    "inf1.24xlarge": 11,
    "inf2": 26,
    "p3dn": 17,
    "trn1": 25,
    "trn1n": 28,
    # Up to 24 instance store volumes; the largest of them has 3 attachments left.
    "d3": 3,
    "d3en": 3,
}
_SHARED_ANY = 27
_SHARED_METAL = 31
_XEN = 39
# The most instance store volumes that a type of another family has.
_INSTANCE_STORE_VOLUMES = 8
# The VPC CNI attaches a second network interface at once, before or after the driver counts them.
_WARM_INTERFACES = 1


def volume_limit(instance_type: InstanceType, node_class: NodeClass) -> int:
    """How many volumes of ``EBS_DRIVER`` the pods of such a node can have; zero or more.

    On the low side where it is not known: of a type that no table has, every accelerator is taken for an attachment,
    and an instance store for eight.
    """
    return max(0, _attachments(instance_type) - len(node_volumes(node_class)))


def _attachments(instance_type: InstanceType) -> int:
    """Attachments for volumes, those of the node itself included."""
    name, (family, _, size) = instance_type.name, instance_type.name.partition(".")
    if name in _DEDICATED_TYPES:
        return _DEDICATED_TYPES[name]
    if _DEDICATED.fullmatch(family):
        return _DEDICATED_METAL if size.startswith("metal") else _by_size(size)
    if instance_type.labels.get(keys.INSTANCE_HYPERVISOR) == "xen":
        return _XEN
    return _shared(instance_type, family, size) - _WARM_INTERFACES


def _by_size(size: str) -> int:
    times = size.removesuffix("xlarge")
    xlarges = int(times) if times.isdecimal() else 1
    return next((limit for least, limit in _DEDICATED_BY_SIZE if xlarges >= least), _DEDICATED_LEAST)


def _shared(instance_type: InstanceType, family: str, size: str) -> int:
    known = _SHARED.get(instance_type.name) or _SHARED.get(family)
    if known is not None:
        return known
    if size.startswith("metal"):
        return _SHARED_METAL
    devices = sum(instance_type.accelerators.amount(name) for name in instance_type.accelerators.accelerators())
    return _SHARED_ANY - devices - (_INSTANCE_STORE_VOLUMES if instance_type.local_nvme_bytes else 0)
