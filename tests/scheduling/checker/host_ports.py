"""Host ports.

Kubernetes documentation, "Configuration Best Practices" and the API of ContainerPort: two pods of one node never hold
the same hostIP, hostPort and protocol; 0.0.0.0 is every address. The model has no ports: pods that want one carry this
name, and are not placed.
"""

from __future__ import annotations

NAMES = ("host ports",)
