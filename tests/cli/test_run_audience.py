"""What the log of a loop shows of what its lanes do."""

from __future__ import annotations

import pytest

from engine.cli.run_audience import LineAudience
from engine.converge.events import StepStarted, Waiting


def test_a_lane_that_waits_for_a_lock_says_so_and_its_steps_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    audience = LineAudience()
    audience.on_event(StepStarted("urn:pulumi:test::nodewright::aws:ec2/instance:Instance::gpu-1", "create"))
    audience.on_event(Waiting("stack 'test' is locked by nw@pod-a"))

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.strip() == "warning: stack 'test' is locked by nw@pod-a"
