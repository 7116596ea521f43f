"""The images that a NodePool names for its nodes: what is taken, and what is refused where it stands."""

from __future__ import annotations

import pytest

from engine.model import labels
from tests.policy.texts import CLASS, POOL, added, findings_of, policy_of


def annotated(images: str) -> str:
    return added(POOL, "metadata:", f'  annotations: {{{labels.PRE_PULL}: "{images}"}}').text


@pytest.mark.parametrize(
    "images",
    [
        "busybox",
        "vllm/vllm-openai:v0.9.1, registry.example.com:5000/team/llm_a:7",
        f"602401143452.dkr.ecr.us-east-1.amazonaws.com/llm@sha256:{'a' * 64}",
        f"example.com/llm:7@sha256:{'0' * 64},",
        "",
    ],
)
def test_images_as_pods_write_them_are_taken(images: str) -> None:
    written = {image.strip() for image in images.split(",")} - {""}
    assert policy_of(annotated(images), CLASS).node_pools[0].pre_pull == tuple(sorted(written))


@pytest.mark.parametrize("image", ["https://example.com/llm", "LLM:7", "llm 7", "llm@sha256:abc", "llm:7:8"])
def test_what_is_no_image_is_refused_by_name(image: str) -> None:
    [found] = [each for each in findings_of(annotated(f"busybox, {image}"), CLASS) if each.rule == "bad-annotation"]
    assert repr(image) in found.message
    assert "busybox" not in found.message
