"""When a run may end in the middle of what goes on for hours: nothing that anybody waits for is left undone."""

from __future__ import annotations

from engine.model.plan import LaunchReason, Plan


def only_goes_on(plan: Plan) -> bool:
    """Whether all that a plan does is to go on with replacing and removing machines: no pod waits for a launch of it,
    and no base capacity or headroom is short."""
    return not plan.repriced and all(launch.reason is LaunchReason.REPLACEMENT for launch in plan.launches)
