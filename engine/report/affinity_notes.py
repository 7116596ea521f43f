"""What is ignored of the node affinity of waiting pods: ORed terms that no new node can meet."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from engine.model.pod import Placing
from engine.model.snapshot import Snapshot
from engine.report.tables import examples
from engine.report.words import counted
from engine.scheduling.preferences import ignored_terms


def affinity_notes(snapshot: Snapshot) -> Iterator[Text]:
    """One for each such term, with the pods that wait with it; none where a pod has no other: that is its refusal."""
    told: dict[int, tuple[str, ...]] = {}
    pods: dict[str, list[str]] = {}
    for pod in snapshot.pods:
        if len(pod.placing.affinity_terms) > 1 and pod.is_waiting:
            # Pods of one owner often share one value.
            if id(pod.placing) not in told:
                told[id(pod.placing)] = ignored_words(pod.placing)
            for words in told[id(pod.placing)]:
                pods.setdefault(words, []).append(str(pod.key))
    for words, names in sorted(pods.items()):
        yield Text(f"Ignored of {counted(len(names), 'pod')} ({examples(sorted(names))}): {words}", "yellow")


def ignored_words(placing: Placing) -> tuple[str, ...]:
    """Of one pod: each term that is of no use for new nodes, while others of its terms are."""
    ignored = ignored_terms(placing)
    if len(ignored) == len(placing.affinity_terms):
        return ()
    return tuple(f"the affinity term {each}. The other terms hold" for each in ignored)
