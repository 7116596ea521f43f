"""What ties pods to each other: topology spread, pod affinity and anti-affinity, host ports, as kube-scheduler counts.

``neighbourhood`` finds out who counts whom, ``topology`` holds the counts while pods are placed.
"""
