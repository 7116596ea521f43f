"""Volume topology and attach limits.

Kubernetes documentation, "Storage Classes" (volumeBindingMode, allowedTopologies), "Persistent Volumes" (node affinity)
and "Node-specific Volume Limits". The model has no volumes: pods that claim one carry this name, and are not placed.
"""

from __future__ import annotations

NAMES = ("persistent volumes",)
