"""How a plan tells of minValues that were relaxed."""

from __future__ import annotations

from engine.model.plan import Launch, LaunchReason, RelaxedMinValues
from engine.report.relaxed_words import relaxed_lines
from tests.builders import claim

ZONE = RelaxedMinValues("topology.kubernetes.io/zone", min_values=2, left=1)


def test_a_line_tells_of_each_pool_and_key_and_how_many_nodes() -> None:
    relaxed = Launch(claim("gpu-1"), LaunchReason.PENDING_PODS, relaxed=(ZONE,))
    plain = Launch(claim("gpu-2"), LaunchReason.PENDING_PODS)
    assert relaxed_lines([relaxed, plain, relaxed]) == (
        "gpu: minValues of topology.kubernetes.io/zone relaxed to 1 of 2 for 2 of its new nodes (BestEffort)",
    )
    assert relaxed_lines([plain]) == ()
