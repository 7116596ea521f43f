"""An instance type's labels and accelerators, as the Karpenter AWS provider gives them.

Source of the rules: karpenter-provider-aws, pkg/providers/instancetype/types.go (computeRequirements,
computeCapacity) and pkg/apis/v1/labels.go.
"""

from __future__ import annotations

import re

from engine.catalog.data import TypeFacts
from engine.model import labels
from engine.model.quantity import NEURON_CORE, NVIDIA_GPU, Resources

# Category, then an amount of memory in the high-memory families (u-6tb1), then the generation.
_FAMILY = re.compile(r"([a-z]+)(?:-\d+tb)?(\d+)")
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_GPU_MAKERS = {"NVIDIA": NVIDIA_GPU, "AMD": "amd.com/gpu"}
_ACCELERATOR_MAKERS = {
    "AWS": "aws.amazon.com/neuron",
    "Habana": "habana.ai/gaudi",
    "Qualcomm": "qualcomm.com/qaic",
}


def kubernetes_arch(facts: TypeFacts) -> str:
    """``amd64`` or ``arm64``."""
    return _ARCHITECTURES[facts.arch]


def accelerators(facts: TypeFacts) -> Resources:
    """Whole devices by the resource that their device plugin advertises; a fractional GPU (g6f, gr6f) is none.

    Neuron devices count both as devices and as cores, as two plugins' resources: a pod asks for one of them.
    """
    resource = (_GPU_MAKERS | _ACCELERATOR_MAKERS).get(facts.accelerator_manufacturer)
    if resource is None or facts.accelerator_count == 0:
        return Resources()
    amounts = {resource: facts.accelerator_count}
    if facts.neuron_cores:
        amounts[NEURON_CORE] = facts.neuron_cores
    return Resources(amounts)


def type_labels(facts: TypeFacts) -> dict[str, str]:
    """The well-known labels of the type; region, zone and capacity type are the offering's.

    What EC2 does not say is left out, as Karpenter does. A fractional GPU has ``instance-gpu-count: "0"``, EC2's own
    figure, so that neither ``In ["1"]`` nor ``Gt 0`` buys it. Different from Karpenter on purpose: Gaudi has the
    accelerator labels, not the GPU labels, since its nodes take neither NVIDIA's image nor its device plugin.
    """
    family, _, size = facts.name.partition(".")
    found = {
        labels.INSTANCE_TYPE: facts.name,
        labels.ARCH: kubernetes_arch(facts),
        labels.OS: "linux",
        labels.INSTANCE_FAMILY: family,
        labels.INSTANCE_SIZE: size,
        labels.INSTANCE_CPU: str(facts.vcpus),
        labels.INSTANCE_MEMORY: str(facts.memory_mib),
        labels.INSTANCE_HYPERVISOR: facts.hypervisor,
        labels.INSTANCE_CAPABILITY_FLEX: "true" if "-flex" in family else "false",
    }
    parts = _FAMILY.match(family)
    if parts is not None:
        found[labels.INSTANCE_CATEGORY], found[labels.INSTANCE_GENERATION] = parts.groups()
    known = {
        labels.INSTANCE_CPU_MANUFACTURER: facts.cpu_manufacturer.lower(),
        labels.INSTANCE_CPU_CLOCK: str(facts.cpu_clock_mhz or ""),
        labels.INSTANCE_NETWORK_BANDWIDTH: str(facts.network_mbps or ""),
        labels.INSTANCE_EBS_BANDWIDTH: str(facts.ebs_mbps or ""),
        labels.INSTANCE_LOCAL_NVME: str(facts.local_nvme_gb or ""),
        labels.INSTANCE_ENCRYPTION_IN_TRANSIT: facts.encryption_in_transit,
    }
    return found | {key: value for key, value in known.items() if value} | _accelerator_labels(facts)


def _accelerator_labels(facts: TypeFacts) -> dict[str, str]:
    if not facts.is_accelerated:
        return {}
    name, maker = _dashed(facts.accelerator_name), _dashed(facts.accelerator_manufacturer)
    count = str(facts.accelerator_count)
    if facts.accelerator_manufacturer in _GPU_MAKERS:
        return {
            labels.INSTANCE_GPU_NAME: name,
            labels.INSTANCE_GPU_MANUFACTURER: maker,
            labels.INSTANCE_GPU_COUNT: count,
            labels.INSTANCE_GPU_MEMORY: str(facts.accelerator_memory_mib),
        }
    return {
        labels.INSTANCE_ACCELERATOR_NAME: name,
        labels.INSTANCE_ACCELERATOR_MANUFACTURER: maker,
        labels.INSTANCE_ACCELERATOR_COUNT: count,
    }


def _dashed(name: str) -> str:
    """EC2's spelling as a label value: ``RTX PRO Server 6000`` is ``rtx-pro-server-6000``."""
    return name.lower().replace(" ", "-")
