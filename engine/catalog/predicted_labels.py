"""Labels that a node gets by itself once it is up, told beforehand by its instance type.

Nobody gives a node these at its launch: NVIDIA's GPU feature discovery and GPU operator, and node feature discovery,
write what they find on the running machine. A pod that selects on one of them needs a node that will have it.

Told here is what every such node shows. What a cluster's own settings decide (sharing and MIG strategies, versions of
driver and CUDA) is left out, and so is what is not sure of a GPU; of a fraction of one, nothing is foretold.

Source: the labels that NVIDIA/k8s-device-plugin documents for GPU feature discovery, families by compute capability as
it derives them; compute capabilities from NVIDIA's list of CUDA GPUs; product names and MiB as NVML reports them with
drivers of 2024 and later (``nvidia-smi -L``, ``nvidia-smi --query-gpu=memory.total``). As of 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from engine.model import labels
from engine.model.catalog import InstanceType
from engine.model.quantity import NVIDIA_GPU

GPU_PRESENT = "nvidia.com/gpu.present"
GPU_COUNT = "nvidia.com/gpu.count"
GPU_PRODUCT = "nvidia.com/gpu.product"
GPU_MEMORY = "nvidia.com/gpu.memory"
GPU_FAMILY = "nvidia.com/gpu.family"
GPU_COMPUTE_MAJOR = "nvidia.com/gpu.compute.major"
GPU_COMPUTE_MINOR = "nvidia.com/gpu.compute.minor"
MIG_CAPABLE = "nvidia.com/mig.capable"
# Node feature discovery's, by PCI vendor alone as NVIDIA's operator sets it up, and by class and vendor by itself.
PCI_NVIDIA = "feature.node.kubernetes.io/pci-10de.present"
PCI_NVIDIA_3D = "feature.node.kubernetes.io/pci-0302_10de.present"


@frozen
class _Gpu:
    """One GPU as its discovery tells it; an empty ``product`` and a ``memory_mib`` of 0 are not known.

    ``is_3d``: its PCI class is that of a 3D controller, not of a display.
    """

    family: str
    compute: tuple[int, int]
    is_mig_capable: bool
    product: str = ""
    memory_mib: int = 0
    is_3d: bool = True


# By `instance-gpu-name` and, where one name is sold with two sizes of memory, by EC2's MiB of one GPU.
_GPUS: Mapping[tuple[str, int], _Gpu] = {
    ("k80", 0): _Gpu("kepler", (3, 7), False, "Tesla-K80", 11441),
    ("m60", 0): _Gpu("maxwell", (5, 2), False, "Tesla-M60", 7680, is_3d=False),
    ("v100", 16384): _Gpu("volta", (7, 0), False, "Tesla-V100-SXM2-16GB", 16384),
    ("v100", 32768): _Gpu("volta", (7, 0), False, "Tesla-V100-SXM2-32GB", 32768),
    ("t4", 0): _Gpu("turing", (7, 5), False, "Tesla-T4", 15360),
    ("t4g", 0): _Gpu("turing", (7, 5), False, "NVIDIA-T4G", 15360),
    ("a10g", 0): _Gpu("ampere", (8, 6), False, "NVIDIA-A10G", 23028),
    ("a100", 40960): _Gpu("ampere", (8, 0), True, "NVIDIA-A100-SXM4-40GB", 40960),
    ("a100", 81920): _Gpu("ampere", (8, 0), True, "NVIDIA-A100-SXM4-80GB", 81920),
    ("l4", 0): _Gpu("ada-lovelace", (8, 9), False, "NVIDIA-L4", 23034),
    ("l40s", 0): _Gpu("ada-lovelace", (8, 9), False, "NVIDIA-L40S", 46068),
    ("h100", 0): _Gpu("hopper", (9, 0), True, "NVIDIA-H100-80GB-HBM3", 81559),
    ("h200", 0): _Gpu("hopper", (9, 0), True, "NVIDIA-H200", 143771),
    ("b200", 0): _Gpu("blackwell", (10, 0), True, "NVIDIA-B200", 183359),
    ("b300", 0): _Gpu("blackwell", (10, 3), True),
    ("rtx-pro-server-6000", 0): _Gpu(
        "blackwell", (12, 0), True, "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, is_3d=False
    ),
}


def predicted_labels(kind: InstanceType) -> Mapping[str, str]:
    """What the type's nodes show of themselves once they are up, in the order of keys; empty where nothing is sure."""
    count = kind.accelerators.amount(NVIDIA_GPU)
    if not count:
        return {}
    told = {GPU_PRESENT: "true", GPU_COUNT: str(count), PCI_NVIDIA: "true"}
    name = kind.labels.get(labels.INSTANCE_GPU_NAME, "")
    gpu = _GPUS.get((name, 0)) or _GPUS.get((name, kind.accelerator_memory_bytes // 2**20))
    if gpu is not None:
        told |= _of_gpu(gpu)
    return {key: told[key] for key in sorted(told)}


def _of_gpu(gpu: _Gpu) -> Mapping[str, str]:
    major, minor = gpu.compute
    told = {
        GPU_FAMILY: gpu.family,
        GPU_COMPUTE_MAJOR: str(major),
        GPU_COMPUTE_MINOR: str(minor),
        MIG_CAPABLE: "true" if gpu.is_mig_capable else "false",
    }
    if gpu.product:
        told[GPU_PRODUCT] = gpu.product
    if gpu.memory_mib:
        told[GPU_MEMORY] = str(gpu.memory_mib)
    if gpu.is_3d:
        told[PCI_NVIDIA_3D] = "true"
    return told
