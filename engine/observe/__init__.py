"""Kubernetes, EC2 and stored state to a Snapshot. Reads only."""
