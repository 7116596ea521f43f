"""Checking autoscalers' ceilings against pools' limits: from a recorded snapshot, from manifests, or from both."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from engine.decide.scale_ceilings import ScaledWorkload, judge_ceilings
from engine.model.catalog import Catalog
from engine.model.diagnostic import Diagnostic, Position
from engine.model.environment import Environment
from engine.model.pod import DaemonSet
from engine.model.policy import Policy
from engine.reconcile.planning import read_snapshot
from engine.reconcile.scale_manifests import add_manifests, manifest_files
from engine.reconcile.scale_objects import ScaleObjects
from engine.report.priority_notes import priority_diagnostics
from engine.report.scale_report import scale_diagnostics


@frozen
class ScaleSources:
    """A snapshot as ``nodewright snapshot`` writes it, and manifests or folders of them, which go before it."""

    snapshot: Path | None = None
    workloads: tuple[Path, ...] = ()


@frozen
class Scaling:
    """What scales. ``findings`` are of the reading, and hold in every environment."""

    workloads: tuple[ScaledWorkload, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    findings: tuple[Diagnostic, ...] = ()

    def judged(
        self, policy: Policy, catalog: Catalog, environment: Environment, *, named: bool
    ) -> tuple[Diagnostic, ...]:
        """What the environment's pools cannot hold; ``named``: each finding says which environment that is."""
        found = judge_ceilings(self.workloads, policy, catalog, environment, self.daemon_sets)
        return scale_diagnostics(found, environment.name if named else "")


def read_scaling(sources: ScaleSources) -> Scaling:
    """Everything that the sources say of scaling, and what the snapshot's priority classes say that nobody understands.

    Raises Fault for a file that is not there, or is no snapshot.
    """
    objects = ScaleObjects()
    misread: tuple[Diagnostic, ...] = ()
    if sources.snapshot is not None:
        snapshot, position = read_snapshot(sources.snapshot), Position(str(sources.snapshot), 1, 1)
        objects.add_snapshot(snapshot, position)
        misread = priority_diagnostics(snapshot.workload, position)
    add_manifests(objects, manifest_files(sources.workloads))
    workloads, findings = objects.scaled_workloads()
    return Scaling(workloads, tuple(objects.daemon_sets.values()), (*objects.findings, *findings, *misread))
