"""Affinity and anti-affinity between pods.

Kubernetes documentation, "Assigning Pods to Nodes", section on inter-pod affinity: a required term holds in the domain
of its topology key; anti-affinity of pods that are placed keeps others off as well. The model has no such terms: pods
that have one carry one of these names, and are not placed.
"""

from __future__ import annotations

NAMES = ("required pod affinity", "required pod anti-affinity")
