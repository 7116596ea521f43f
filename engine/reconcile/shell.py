"""The environment variables under which ``pulumi`` works on an environment, whoever runs it: we, or a person."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from attrs import frozen

from engine.converge.toolchain import (
    Toolchain,
    find_toolchain,
    official_aws_plugin,
    pulumi_home,
)
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.programs.cache import user_cache_dir
from engine.reconcile.ports import Tell
from engine.reconcile.workspace import Workspace
from engine.sandbox.toolbox import AWS_PLUGIN, LANGUAGE_HOST, stand_in_bin


@frozen
class Shell:
    """``variables`` are to be set on top of what is there; PATH is whole."""

    toolchain: Toolchain
    variables: Mapping[str, str]

    def export_lines(self) -> str:
        """For ``eval``: one export a line."""
        return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(self.variables.items()))


def shell_variables(
    workspace: Workspace, environment: Environment, inherited: Mapping[str, str], tell: Tell, *, needs_aws: bool = True
) -> Shell:
    """Raises Fault when there is no Pulumi, or when a real account would need the official AWS plugin.

    `needs_aws` false: for an operation that asks nothing of AWS.
    """
    path = inherited.get("PATH", os.defpath)
    toolchain = find_toolchain(
        path,
        user_cache_dir(inherited),
        workspace.root / "tools",
        plugins_home=pulumi_home(inherited),
        tell=tell,
    )
    if needs_aws and toolchain.aws_plugin is None:
        _refuse_a_real_account(environment)
    stand_ins = [
        name
        for name, official in ((LANGUAGE_HOST, toolchain.language_host), (AWS_PLUGIN, toolchain.aws_plugin))
        if official is None
    ]
    bin_folder = stand_in_bin(workspace.state_directory(environment) / "bin", stand_ins)
    variables = {
        "PATH": os.pathsep.join([str(bin_folder), str(toolchain.pulumi.parent), path]),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        **_backend(workspace, environment),
        **_sandbox_credentials(workspace, environment, inherited),
    }
    return Shell(toolchain, variables)


def require_aws_plugin(environment: Environment, inherited: Mapping[str, str]) -> None:
    """Raises Fault for a real account without Pulumi's official AWS plugin: better before a plan than after it."""
    if official_aws_plugin(inherited.get("PATH", os.defpath), pulumi_home(inherited)) is None:
        _refuse_a_real_account(environment)


def _refuse_a_real_account(environment: Environment) -> None:
    if environment.endpoint_url is None and environment.sandbox is None:
        raise Fault(
            f"environment {environment.name} is a real AWS account, and that needs Pulumi's official AWS plugin; "
            "nodewright's stand-in serves loopback endpoints only",
            ("pulumi plugin install resource aws 7.51.1", "nodewright doctor shows what is here"),
        )


def _backend(workspace: Workspace, environment: Environment) -> dict[str, str]:
    """The stack file's backend; a sandbox keeps its state in the project; else whatever ``pulumi login`` chose."""
    if environment.backend is not None:
        return {"PULUMI_BACKEND_URL": environment.backend}
    if environment.sandbox is None:
        return {}
    folder = workspace.state_directory(environment) / "pulumi"
    folder.mkdir(parents=True, exist_ok=True)
    return {"PULUMI_BACKEND_URL": folder.resolve().as_uri()}


def _sandbox_credentials(
    workspace: Workspace, environment: Environment, inherited: Mapping[str, str]
) -> dict[str, str]:
    if environment.sandbox is None:
        return {}
    passphrase = {}
    if "PULUMI_CONFIG_PASSPHRASE" not in inherited and "PULUMI_CONFIG_PASSPHRASE_FILE" not in inherited:
        passphrase = {"PULUMI_CONFIG_PASSPHRASE_FILE": str(workspace.stacks / "sandbox.passphrase")}
    return {
        **passphrase,
        # An emulator takes any credentials; naming these keeps a person's real ones out of its reach.
        "AWS_ACCESS_KEY_ID": "sandbox",
        "AWS_SECRET_ACCESS_KEY": "sandbox",
        "AWS_SESSION_TOKEN": "",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": environment.region,
    }
