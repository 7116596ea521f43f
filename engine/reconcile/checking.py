"""Checking policy and stack files without a cluster, an account or Pulumi."""

from __future__ import annotations

from engine.model.diagnostic import Diagnostic, InvalidInput
from engine.model.fault import Fault
from engine.policy.lint import lint
from engine.reconcile.assembly import catalog_of
from engine.reconcile.scale_checking import ScaleSources, Scaling, read_scaling
from engine.reconcile.workspace import Workspace


def check_environments(
    workspace: Workspace, names: tuple[str, ...], scaled: ScaleSources = ScaleSources()
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Every finding for the environments of these names (none: all), each once, in file order; and who was checked.

    ``scaled`` says where autoscalers are, whose ceilings are held against the pools' limits.
    Raises Fault when there is no such environment, or none at all, or a file that was named is not there.
    """
    checked = names or workspace.environment_names()
    if not checked:
        raise Fault(f"{workspace.stacks} holds no Pulumi.ENV.yaml", "write one: an environment starts as a stack file")
    scaling, several = read_scaling(scaled), len(checked) > 1
    findings = {finding for name in checked for finding in _findings(workspace, name, scaling, several)}
    findings.update(scaling.findings)
    return tuple(sorted(findings, key=lambda finding: finding.sort_key)), checked


def _findings(workspace: Workspace, name: str, scaling: Scaling, several: bool) -> tuple[Diagnostic, ...]:
    try:
        environment = workspace.environment(name)
        policy = workspace.policy(environment)
        catalog = catalog_of(workspace, environment)
        ceilings = scaling.judged(policy, catalog, environment, named=several)
        return (*policy.warnings, *lint(policy, catalog), *ceilings)
    except InvalidInput as invalid:
        return invalid.diagnostics
