"""Cordon, taint and evict through the Kubernetes API."""
