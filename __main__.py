"""The Pulumi program: find the desired document of the selected stack, and declare it."""

from pathlib import Path

import pulumi

from engine.converge.program import declare
from engine.model.diagnostic import InvalidInput
from engine.model.fault import Fault
from engine.reconcile.program import declaration

try:
    desired = declaration(pulumi.get_stack(), is_preview=pulumi.runtime.is_dry_run(), start=Path(__file__).parent)
except (Fault, InvalidInput) as refusal:
    raise pulumi.RunError("\n  → ".join([str(refusal), *getattr(refusal, "hints", ())])) from None
if desired.summary:
    pulumi.log.info(desired.summary)
declare(desired.document, desired.environment, adopt=desired.adopt)
