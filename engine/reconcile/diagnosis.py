"""What ``nodewright doctor`` finds: nothing is changed, unless the Pulumi CLI is to be installed."""

from __future__ import annotations

import os
import platform

from engine.converge.toolchain import (
    Finding,
    FindingState,
    find_toolchain,
    inspect_toolchain,
    pulumi_home,
    user_cache_dir,
)
from engine.model.diagnostic import InvalidInput, Severity
from engine.model.fault import Fault
from engine.reconcile.checking import check_environments
from engine.reconcile.ports import Tell
from engine.reconcile.sandboxed import ec2_folder
from engine.reconcile.workspace import Workspace
from engine.sandbox.ec2 import ec2_status


def diagnose(workspace: Workspace, tell: Tell, *, install: bool) -> tuple[tuple[Finding, ...], bool]:
    """Every finding, and whether some environment can converge. Raises Fault when an install fails."""
    path, tools = os.environ.get("PATH", os.defpath), workspace.root / "tools"
    cache, home = user_cache_dir(os.environ), pulumi_home(os.environ)
    if install:
        find_toolchain(path, cache, tools, plugins_home=home, tell=tell)
    findings = (
        Finding("python", FindingState.OK, f"{platform.python_version()} with the locked packages"),
        *inspect_toolchain(path, cache, tools, plugins_home=home),
        *_files(workspace),
        *_sandboxes(workspace),
    )
    return findings, all(finding.state is not FindingState.MISSING for finding in findings)


def _files(workspace: Workspace) -> tuple[Finding, ...]:
    try:
        found, checked = check_environments(workspace, ())
    except (Fault, InvalidInput) as fault:
        return (Finding("policy and stack files", FindingState.MISSING, str(fault), "nodewright check"),)
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    state = FindingState.MISSING if errors else FindingState.OK
    detail = f"{', '.join(checked)}: {errors} errors, {len(found) - errors} warnings"
    return (Finding("policy and stack files", state, detail, "nodewright check" if found else ""),)


def _sandboxes(workspace: Workspace) -> tuple[Finding, ...]:
    running = [
        (name, endpoint)
        for name in workspace.environment_names()
        if (endpoint := ec2_status(ec2_folder(workspace, name))) is not None
    ]
    return tuple(
        Finding(
            f"EC2 of {name}",
            FindingState.OK,
            f"EC2 by moto at {endpoint.url}, process {endpoint.pid}",
            f"nodewright sandbox down {name} stops it",
        )
        for name, endpoint in running
    )
