"""Which Kubernetes plugin Pulumi is given: the official one where there is one, else the one that tools/ pins."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.converge.toolchain import pulumi_home
from engine.model.fault import Fault
from engine.programs.cache import user_cache_dir
from engine.programs.go_program import KUBERNETES_PROVIDER, find_program

KUBERNETES_PLUGIN = "pulumi-resource-kubernetes"


def kubernetes_plugin(inherited: Mapping[str, str], tools_dir: Path) -> Path:
    """The plugin's program. `inherited` are this process's variables, `tools_dir` holds the pinned modules.

    Looked for on PATH, then in Pulumi's own plugin folder (the newest 4.x), then in the user's cache. Raises Fault,
    with the ways to get one, when there is none; nothing is fetched or built.
    """
    path = inherited.get("PATH", os.defpath)
    found = next(_official(path, pulumi_home(inherited)), None) or find_program(
        KUBERNETES_PROVIDER, path, user_cache_dir(inherited), tools_dir
    )
    if found is None:
        raise Fault(
            "what is installed in a cluster goes there through Pulumi's Kubernetes plugin, and there is none here",
            (
                "pulumi plugin install resource kubernetes 4.34.2",
                f"nodewright doctor --install --all builds one from tools/ ({KUBERNETES_PROVIDER.takes}, once)",
            ),
        )
    return found


def _official(path: str, plugins_home: Path) -> Iterator[Path]:
    on_path = shutil.which(KUBERNETES_PLUGIN, path=path)
    if on_path:
        yield Path(on_path)
    installed = sorted((plugins_home / "plugins").glob("resource-kubernetes-v4.*"), key=_version, reverse=True)
    for folder in installed:
        if os.access(folder / KUBERNETES_PLUGIN, os.X_OK):
            yield folder / KUBERNETES_PLUGIN


def _version(folder: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", folder.name)]
