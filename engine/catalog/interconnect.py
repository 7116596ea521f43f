"""Which instance types join their GPUs with NVLink. EC2's answers do not say, so it is told by the GPU.

Source: AWS's pages of the P3, P4, P5 and P6 instance types, which name NVLink or NVSwitch for every size with more than
one GPU, and those of the G and P2 families, whose GPUs meet over PCIe alone.
"""

from __future__ import annotations

from engine.model import labels
from engine.model.quantity import NVIDIA_GPU, Resources

# As `instance-gpu-name` spells them.
_JOINED_BY_NVLINK = frozenset({"v100", "a100", "h100", "h200", "b200", "b300"})


def has_nvlink(type_labels: dict[str, str], accelerators: Resources) -> bool:
    """Whether a type of these labels has several GPUs and NVLink joins them all; a single GPU has nothing to join."""
    return accelerators.amount(NVIDIA_GPU) > 1 and type_labels.get(labels.INSTANCE_GPU_NAME) in _JOINED_BY_NVLINK
