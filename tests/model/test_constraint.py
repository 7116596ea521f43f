"""Requirements and tolerations mean what they mean in Kubernetes."""

import pytest

from engine.model.constraint import Operator, Requirement, Taint, TaintEffect, Toleration


@pytest.mark.parametrize(
    ("operator", "values", "label", "holds"),
    [
        (Operator.IN, ("a", "b"), "a", True),
        (Operator.IN, ("a", "b"), None, False),
        (Operator.NOT_IN, ("a",), None, True),
        (Operator.NOT_IN, ("a",), "a", False),
        (Operator.EXISTS, (), "", True),
        (Operator.EXISTS, (), None, False),
        (Operator.DOES_NOT_EXIST, (), None, True),
        (Operator.DOES_NOT_EXIST, (), "x", False),
        (Operator.GT, ("4",), "5", True),
        (Operator.GT, ("4",), "4", False),
        (Operator.LT, ("4",), "3", True),
        (Operator.GTE, ("4",), "4", True),
        (Operator.LTE, ("4",), "5", False),
        (Operator.GT, ("4",), "many", False),
        (Operator.GT, ("4",), None, False),
        (Operator.GT, ("4",), "1_000", False),
        (Operator.GT, ("4",), str(2**63), False),
        (Operator.GT, ("4",), str(2**63 - 1), True),
        (Operator.GT, ("4",), "", False),
        (Operator.GT, (), "5", False),
    ],
)
def test_a_requirement_admits_a_label_as_kubernetes_does(
    operator: Operator, values: tuple[str, ...], label: str | None, holds: bool
) -> None:
    assert Requirement("key", operator, values).admits(label) is holds


GPU = Taint("nvidia.com/gpu", "", TaintEffect.NO_SCHEDULE)
CORE = Taint("workload-type", "core", TaintEffect.NO_EXECUTE)


@pytest.mark.parametrize(
    ("toleration", "taint", "holds"),
    [
        (Toleration(exists=True), CORE, True),
        (Toleration(key="nvidia.com/gpu", exists=True), GPU, True),
        (Toleration(key="nvidia.com/gpu", exists=True, effect=TaintEffect.NO_EXECUTE), GPU, False),
        (Toleration(key="workload-type", value="core"), CORE, True),
        (Toleration(key="workload-type", value="batch"), CORE, False),
        (Toleration(key="nvidia.com/gpu"), GPU, True),
        (Toleration(), GPU, False),
    ],
)
def test_a_toleration_tolerates_as_kubernetes_does(toleration: Toleration, taint: Taint, holds: bool) -> None:
    assert toleration.tolerates(taint) is holds
