"""What ``nodewright doctor`` finds: nothing is changed, unless the Pulumi CLI is to be installed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from engine.converge.toolchain import (
    Finding,
    FindingState,
    find_toolchain,
    inspect_toolchain,
    pulumi_home,
)
from engine.model.diagnostic import InvalidInput, Severity
from engine.model.fault import Fault
from engine.programs.cache import user_cache_dir
from engine.programs.go_program import PROGRAMS, GoProgram, build_program, find_program
from engine.reconcile.checking import check_environments
from engine.reconcile.ports import Tell
from engine.reconcile.sandboxed import ec2_folder, plane_status
from engine.reconcile.workspace import Workspace
from engine.sandbox.ec2 import ec2_status


class Install(Enum):
    """What ``doctor`` is to fetch or build: nothing, the Pulumi CLI, or every program that tools/ pins as well."""

    NOTHING = "nothing"
    PULUMI = "pulumi"
    ALL = "all"


def diagnose(workspace: Workspace, tell: Tell, install: Install) -> tuple[tuple[Finding, ...], bool]:
    """Every finding, and whether some environment can converge. Raises Fault when an install fails."""
    path, tools = os.environ.get("PATH", os.defpath), workspace.root / "tools"
    cache, home = user_cache_dir(os.environ), pulumi_home(os.environ)
    if install is not Install.NOTHING:
        find_toolchain(path, cache, tools, plugins_home=home, tell=tell)
    if install is Install.ALL:
        # One after the other: each uses all cores, and gigabytes of memory to link.
        for program in PROGRAMS:
            build_program(program, path, cache, tools, tell)
    findings = (
        Finding("python", FindingState.OK, f"{platform.python_version()} with the locked packages"),
        *inspect_toolchain(path, cache, tools, plugins_home=home),
        *(_program(program, find_program(program, path, cache, tools)) for program in PROGRAMS),
        *_files(workspace),
        *_queues(workspace),
        *_sandboxes(workspace),
    )
    return findings, all(finding.state is not FindingState.MISSING for finding in findings)


def _program(program: GoProgram, found: Path | None) -> Finding:
    if found is not None:
        return Finding(program.file, FindingState.OK, f"in the user's cache: {found}")
    return Finding(
        program.file,
        FindingState.NOT_BUILT,
        f"{program.named} is not built; {program.wanted_by} needs it",
        f"nodewright doctor --install --all builds it ({program.takes}, once)",
    )


def _files(workspace: Workspace) -> tuple[Finding, ...]:
    try:
        found, checked = check_environments(workspace, ())
    except (Fault, InvalidInput) as fault:
        return (Finding("policy and stack files", FindingState.MISSING, str(fault), "nodewright check"),)
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    state = FindingState.MISSING if errors else FindingState.OK
    detail = f"{', '.join(checked)}: {errors} errors, {len(found) - errors} warnings"
    return (Finding("policy and stack files", state, detail, "nodewright check" if found else ""),)


def _queues(workspace: Workspace) -> Iterator[Finding]:
    """Which environments hear of interruptions, and what they need for it; asks nobody."""
    for name in workspace.environment_names():
        try:
            environment = workspace.environment(name)
        except (Fault, InvalidInput):
            # Told with the other findings of its file.
            continue
        queue, is_made = environment.interruption_queue, environment.owns_interruption_queue
        if queue:
            needs = "the identity that runs Nodewright needs sqs:GetQueueUrl, sqs:ReceiveMessage and sqs:DeleteMessage"
            found = f"SQS queue {queue}{', which the environment makes' if is_made else ''}; {needs} on it"
            rules = "rights to make it and the rules that feed it" if is_made else "five EventBridge rules feed it"
            yield Finding(f"interruptions of {name}", FindingState.OK, found, f"{rules}: docs/interruptions.md")


def _sandboxes(workspace: Workspace) -> Iterator[Finding]:
    for name in workspace.environment_names():
        stops = f"nodewright sandbox down {name} stops it"
        endpoint = ec2_status(ec2_folder(workspace, name))
        if endpoint is not None:
            found = f"EC2 by moto at {endpoint.url}, process {endpoint.pid}"
            yield Finding(f"EC2 of {name}", FindingState.OK, found, stops)
        plane = plane_status(workspace, name)
        if plane is not None:
            found = f"Kubernetes at {plane.endpoint}, KUBECONFIG={plane.kubeconfig}"
            yield Finding(f"cluster of {name}", FindingState.OK, found, stops)
