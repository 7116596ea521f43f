"""What is compiled when the project is set up is all that a plan needs compiled."""

from __future__ import annotations

from engine.scheduling.packing import search
from engine.scheduling.packing.compiled import compile_ahead, compiled
from engine.scheduling.packing.pack import pack
from engine.scheduling.packing.problem import NodeKind, PackClass, PackingProblem


def test_packing_compiles_nothing_that_was_not_compiled_ahead() -> None:
    compile_ahead()
    [before] = compiled(search.best_load).signatures
    classes = tuple(PackClass((3 + size, 7 + size % 5), 9, frozenset(range(3))) for size in range(12))
    kinds = tuple(NodeKind((16 * times, 30 * times), 1000 * times + times) for times in (1, 2, 4))
    assert pack(PackingProblem(classes, kinds), 1_000_000).steps, "it was searched, not guessed"
    assert compiled(search.best_load).signatures == [before]
    assert len(compiled(search.weighing).signatures) == 1
