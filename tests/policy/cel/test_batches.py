"""Many values at once give the answers that each gives alone, whatever the expression reads of them."""

from __future__ import annotations

import pytest

from engine.model.money import UsdPerHour
from engine.model.rule import RuleKind
from engine.policy.cel.engines import ENGINES, engine_named
from engine.policy.cel.types import Scalar
from engine.policy.facts.schema import INSTANCE_TYPE, POD, variables_for
from engine.policy.facts.values import instance_type_facts, pod_facts
from tests.builders import NOON, TYPES, pod

VARIABLES = variables_for(RuleKind.REQUIREMENT_RULE, "require", {}, [], time_sensitive=False)
SOURCES = (
    "instanceType.vcpus > 4",
    'instanceType.labels["karpenter.k8s.aws/instance-family"] == "g5"',
    '"karpenter.k8s.aws/instance-gpu-name" in instanceType.labels',
    "instanceType.labels.exists(key, instanceType.labels[key] == 'g5')",
    'instanceType.zones.exists(zone, zone == "us-east-1b") && instanceType.nvlink == false',
    "100 / (instanceType.vcpus - 4) > 0",
    'instanceType.labels["no-such-label"] == "x"',
    "pod.gpus <= instanceType.gpuCount",
    "pod.gpus == 1",
)
# The portable subset takes no record as a whole.
WHOLE = (
    "[instanceType].exists(each, each.price < 2.0 && each.gpuCount > 0)",
    "instanceType == instanceType && instanceType.gpuMemoryGiB > 20",
)
ASKED = [*((name, source) for name in sorted(ENGINES) for source in SOURCES), *(("cel-expr", each) for each in WHOLE)]


@pytest.mark.parametrize(("name", "source"), ASKED)
def test_a_batch_gives_what_each_value_gives_alone(name: str, source: str) -> None:
    engine = engine_named(name)
    program = engine.compile(source, VARIABLES, Scalar.BOOL)
    types = tuple(
        engine.bind(INSTANCE_TYPE, instance_type_facts(kind, "spot", UsdPerHour.parse(price), ["us-east-1b"]))
        for kind, price in zip(TYPES, ("1", "2", "3", "0.1", "5", "6", "7"), strict=True)
    )
    facts = {"pod": engine.bind(POD, pod_facts(pod(gpu=1), NOON))}
    alone = tuple(program.evaluate({**facts, "instanceType": each}) for each in types)
    assert program.evaluate_each(facts, "instanceType", types) == alone
    # The very same tuple, which an engine may have kept, and the types in another order.
    assert program.evaluate_each(facts, "instanceType", types) == alone
    assert program.evaluate_each(facts, "instanceType", types[::-1]) == alone[::-1]
    assert tuple(program.evaluate({**facts, "instanceType": each}) for each in types) == alone
