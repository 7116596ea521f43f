"""Files of Kubernetes manifests that a sandbox's cluster holds besides the pods that it draws."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from engine.model.fault import Fault


def read_manifests(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Every object of the files, in order; raises Fault for a file that is missing or no YAML."""
    return [found for file in files for found in _objects(file)]


def _objects(file: Path) -> list[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(file.read_bytes()))
    except OSError as error:
        raise Fault(f"{file} cannot be read: {error.strerror}", "correct nodewright:sandbox manifests") from None
    except yaml.YAMLError as error:
        raise Fault(f"{file} is no YAML: {error}", "correct the file") from None
    return [document for document in documents if isinstance(document, dict)]
