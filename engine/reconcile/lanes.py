"""Converging several lanes of one document at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from engine.model.document import DesiredDocument
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.reconcile.ports import ConvergingSession, OnEvent


@frozen
class _Ended:
    stack: str
    outcome: Outcome | None = None
    error: BaseException | None = None


def converge_lanes(
    session: ConvergingSession,
    document: DesiredDocument,
    instances: Sequence[Instance],
    on_progress: OnEvent,
    stacks: Sequence[str],
    known_ids: Mapping[str, str],
    *,
    refresh: bool = False,
) -> tuple[Outcome, ...]:
    """What became of each of these stacks, of those that were begun; ``refresh`` is for the environment's own.

    All at once, but where the foundation has still to be made: then the environment's own goes first, since the others
    stand on it. ``on_progress`` is called in this thread. A Ctrl-C lets the steps in flight finish, a second one breaks
    them off. Raises what a lane raised, once all have ended.
    """
    main = document.environment
    if main in stacks and (refresh or len(stacks) == 1 or not session.lane(main).foundation_stands(document)):
        first = session.lane(main).converge(document, instances, on_progress, refresh=refresh, known_ids=known_ids)
        first = evolve(first, stack=main)
        if first.was_interrupted:
            return (first,)
        others = [stack for stack in stacks if stack != main]
        return (first, *_at_once(session, document, instances, on_progress, others, known_ids))
    return _at_once(session, document, instances, on_progress, stacks, known_ids)


def _at_once(
    session: ConvergingSession,
    document: DesiredDocument,
    instances: Sequence[Instance],
    on_progress: OnEvent,
    stacks: Sequence[str],
    known_ids: Mapping[str, str],
) -> tuple[Outcome, ...]:
    told: queue.Queue[object] = queue.Queue()

    def converge(stack: str) -> None:
        try:
            outcome = session.lane(stack).converge(document, instances, told.put, known_ids=known_ids)
            told.put(_Ended(stack, evolve(outcome, stack=stack)))
        except BaseException as error:
            # This thread has nobody to tell but the one that waits for it.
            told.put(_Ended(stack, error=error))

    for stack in stacks:
        threading.Thread(target=converge, args=[stack], name=f"lane {stack}", daemon=True).start()
    ended: dict[str, _Ended] = {}
    while len(ended) < len(stacks):
        try:
            event = told.get()
            if isinstance(event, _Ended):
                ended[event.stack] = event
            else:
                on_progress(event)
        except KeyboardInterrupt:
            session.interrupt()
    for one in ended.values():
        if one.error is not None:
            raise one.error
    return tuple(one.outcome for one in (ended[stack] for stack in stacks) if one.outcome is not None)
