"""The EBS volumes that a node of a class gets, and the size of the one that pods write to.

Source of the rules: karpenter-provider-aws, pkg/providers/amifamily (default block device mappings, ephemeral block
device of each family) and ephemeralStorage in pkg/providers/instancetype/types.go.
"""

from __future__ import annotations

from attrs import frozen

from engine.model.policy import AmiFamily, BlockDevice, NodeClass

GIB = 2**30
_DEFAULT_SIZE_GIB = 20


@frozen
class _FamilyVolumes:
    """What a family's image brings by itself, and the device that kubelet counts as ephemeral storage."""

    ephemeral_device: str
    defaults: tuple[BlockDevice, ...]


def _gp3(device_name: str, size_gib: int, *, is_root: bool) -> BlockDevice:
    return BlockDevice(device_name=device_name, volume_size_gib=size_gib, encrypted=True, is_root=is_root)


_AMAZON_LINUX = _FamilyVolumes("/dev/xvda", (_gp3("/dev/xvda", _DEFAULT_SIZE_GIB, is_root=True),))
_FAMILIES = {
    AmiFamily.AL2: _AMAZON_LINUX,
    AmiFamily.AL2023: _AMAZON_LINUX,
    AmiFamily.BOTTLEROCKET: _FamilyVolumes(
        "/dev/xvdb", (_gp3("/dev/xvda", 4, is_root=True), _gp3("/dev/xvdb", _DEFAULT_SIZE_GIB, is_root=False))
    ),
}


def node_volumes(node_class: NodeClass) -> tuple[BlockDevice, ...]:
    """Every volume of a node: those that the class declares, and the image's own where the class does not name them.

    An image's volumes exist whether a class mentions them or not; a class that declares ``/dev/sda1`` on an AL2023
    image, whose root is ``/dev/xvda``, pays for both. A custom image is unknown: what is declared is taken as all,
    20 GiB of gp3 when nothing is.
    """
    declared = node_class.block_devices
    family = _FAMILIES.get(node_class.ami_family)
    if family is None:
        return declared or _AMAZON_LINUX.defaults
    names = {device.device_name for device in declared}
    has_root = any(device.is_root for device in declared)
    own = (
        device for device in family.defaults if device.device_name not in names and not (device.is_root and has_root)
    )
    return (*declared, *own)


def volume_size_gib(device: BlockDevice) -> int:
    """A volume without a size takes its snapshot's, which is not known here: 20 GiB, as Karpenter assumes."""
    return device.volume_size_gib if device.volume_size_gib is not None else _DEFAULT_SIZE_GIB


def ephemeral_storage_bytes(node_class: NodeClass) -> int:
    """The size of the volume that pods write to: the declared root, else the family's ephemeral device, else 20 GiB.

    For a custom image it is the last volume declared.
    """
    declared = node_class.block_devices
    root = next((device for device in declared if device.is_root and device.volume_size_gib is not None), None)
    if root is None and declared:
        root = _ephemeral_device(node_class)
    return (volume_size_gib(root) if root is not None else _DEFAULT_SIZE_GIB) * GIB


def _ephemeral_device(node_class: NodeClass) -> BlockDevice | None:
    family = _FAMILIES.get(node_class.ami_family)
    if family is None:
        return node_class.block_devices[-1]
    named = (device for device in node_class.block_devices if device.device_name == family.ephemeral_device)
    return next(named, None)
