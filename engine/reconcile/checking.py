"""Checking policy and stack files without a cluster, an account or Pulumi."""

from __future__ import annotations

from engine.model.diagnostic import Diagnostic, InvalidInput
from engine.model.fault import Fault
from engine.policy.lint import lint
from engine.reconcile.assembly import catalog_of
from engine.reconcile.workspace import Workspace


def check_environments(workspace: Workspace, names: tuple[str, ...]) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Every finding for the environments of these names (none: all), each once, in file order; and who was checked.

    Raises Fault when there is no such environment, or none at all.
    """
    checked = names or workspace.environment_names()
    if not checked:
        raise Fault(f"{workspace.stacks} holds no Pulumi.ENV.yaml", "write one: an environment starts as a stack file")
    findings = {finding for name in checked for finding in _findings(workspace, name)}
    return tuple(sorted(findings, key=lambda finding: finding.sort_key)), checked


def _findings(workspace: Workspace, name: str) -> tuple[Diagnostic, ...]:
    try:
        environment = workspace.environment(name)
        policy = workspace.policy(environment)
        return (*policy.warnings, *lint(policy, catalog_of(workspace, environment)))
    except InvalidInput as invalid:
        return invalid.diagnostics
