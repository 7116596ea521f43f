"""Where the CLI finds a project for the lanes beside the main one.

The CLI writes a stack's settings beside its project, and `stacks/` is for environments: each file there is one. So
lanes have a project of the same name in the environment's own folder.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.converge import urns

_PROJECT_FILE = f"# For the lanes of this environment; written anew as needed.\nname: {urns.PROJECT}\nruntime: python\n"
# How a stack's secrets are opened; the lanes' are opened as the environment's are.
_SECRETS = re.compile(r"^(?:secretsprovider|encryptedkey|encryptionsalt):.*$", re.MULTILINE)


def lane_project(project: Path, environment: str, lane: str) -> Path:
    """The folder to call the CLI in for that lane. `project` is the environment's, which holds `stacks/`."""
    folder = project / ".nodewright" / environment / "lanes"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "Pulumi.yaml", _PROJECT_FILE)
    settings = stack_file(project, environment)
    secrets = _SECRETS.findall(settings.read_text(encoding="utf-8")) if settings.is_file() else []
    if secrets:
        _write(folder / f"Pulumi.{lane}.yaml", "\n".join(secrets) + "\n")
    return folder


def stack_file(project: Path, environment: str) -> Path:
    return project / "stacks" / f"Pulumi.{environment}.yaml"


def _write(file: Path, text: str) -> None:
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return
    unfinished = file.with_name(f".{file.name}.part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)
