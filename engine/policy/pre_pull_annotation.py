"""The images that a NodePool wants on its nodes before pods do: our annotation ``nodewright.dev/pre-pull``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.model import labels
from engine.policy.findings import ObjectFindings

# REGISTRY[:PORT]/PATH[:TAG][@DIGEST], as the OCI distribution specification has it; a registry may be left out.
_IMAGE = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9.-]*(:\d+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_SHOWN_CHARACTERS = 80


def read_pre_pull(annotations: Mapping[str, str], findings: ObjectFindings) -> tuple[str, ...]:
    """The images, in name order; what is none goes to ``findings``: a DaemonSet with it would never start."""
    images = {written.strip() for written in annotations.get(labels.PRE_PULL, "").split(",")} - {""}
    for image in sorted(images):
        if not _IMAGE.fullmatch(image):
            findings.error(
                ("metadata", "annotations", labels.PRE_PULL),
                "bad-annotation",
                f"{labels.PRE_PULL} names {image[:_SHOWN_CHARACTERS]!r}, which is no image",
                "write images as a pod does, separated by commas: registry.example.com/llm:7, busybox",
            )
    return tuple(sorted(images))
