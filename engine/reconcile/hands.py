"""What a pass does in the cluster itself: it registers nodes, nominates pods, marks nodes and asks pods to leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from queue import Empty, SimpleQueue

from attrs import field, frozen

from engine.model.drain import Mark
from engine.model.eviction import Eviction
from engine.model.fault import Fault
from engine.model.plan import Nomination, Plan, RemovalPhase
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NOTHING
from engine.model.snapshot import Snapshot
from engine.reconcile.host import Host, Work
from engine.reconcile.openings import Opening, Turns
from engine.reconcile.ports import Ports
from engine.reconcile.registrations import Registration, Step, closed_nodes, registrations
from engine.reconcile.troubles import as_fault

# A pod whose budget holds it back is asked again this often, not at every pass.
_AGAIN_SECONDS = 5.0
# So many faults in a row are the API server's, not an object's.
_MOST_FAULTS = 3
_NOMINATIONS = "nominations"

Answered = Callable[[tuple[str, tuple[Eviction, ...]]], None]


@frozen
class Drain:
    """A node that is to be marked, the ``pods`` that are asked to leave it, and those that are deleted, each with the
    seconds that it has left to end."""

    node: str
    mark: Mark
    pods: tuple[PodKey, ...] = ()
    forced: tuple[tuple[PodKey, int], ...] = ()

    @property
    def essence(self) -> object:
        """What is done, whenever: of one that was marked before, the mark's own time stands."""
        return self.node, self.pods, tuple(pod for pod, _ in self.forced)


@frozen
class Chores:
    """Nodes of lower ``ranks`` are opened first, and those of none last."""

    registrations: tuple[Registration, ...] = ()
    nominations: tuple[Nomination, ...] = ()
    marks: tuple[Drain, ...] = ()
    ranks: Mapping[str, tuple[int, ...]] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.registrations or self.nominations or self.marks)


def chores_of(plan: Plan, snapshot: Snapshot) -> Chores:
    """All that the plan wants done in the cluster and that the snapshot does not show done.

    A pod that is not told its own node yet takes what room it finds on the nodes that are open, that of those told of
    lower priority included. So nodes whose pods go first are opened first, and those with room to spare last.
    """
    named = {pod.key: pod.nominated_node_name for pod in snapshot.pods} if plan.nominations else {}
    due = registrations(plan, snapshot)
    ranks = _ranks(plan, snapshot) if due and plan.nominations else {}
    due = tuple(sorted(due, key=lambda each: (each.node not in ranks, ranks.get(each.node, ()))))
    closed = closed_nodes(snapshot, due) if plan.nominations else frozenset()
    return Chores(
        registrations=due,
        nominations=tuple(
            each for each in plan.nominations if named.get(each.pod) != each.node and each.node not in closed
        ),
        marks=drains_of(plan),
        ranks=ranks,
    )


def drains_of(plan: Plan) -> tuple[Drain, ...]:
    """The nodes that the plan marks, in claim order, with the pods that it has leave them now."""
    return tuple(
        Drain(
            node=removal.record.node,
            mark=Mark(at=plan.decided_at, reason=removal.record.reason),
            pods=removal.pods,
            forced=tuple((each.pod, each.seconds_left(plan.decided_at)) for each in removal.forced),
        )
        for removal in plan.removals
        if removal.phase is RemovalPhase.MARK and removal.record.node
    )


def _ranks(plan: Plan, snapshot: Snapshot) -> dict[str, tuple[int, ...]]:
    """Of each node that pods are nominated to, lowest first: by the highest priority of these, then by the lowest; then
    those that leave no room to pods of others."""
    pods = {pod.key: pod for pod in snapshot.pods}
    room = {node.name: node.allocatable for node in snapshot.nodes}
    of_node: dict[str, list[Pod]] = {}
    for told in plan.nominations:
        of_node.setdefault(told.node, []).append(pods[told.pod])
    asked = {pod.placing.requests for told in of_node.values() for pod in told}

    def rank(name: str, own: list[Pod]) -> tuple[int, ...]:
        left = room[name] - sum((pod.placing.requests for pod in own), NOTHING)
        priorities = [pod.priority for pod in own]
        return -max(priorities), -min(priorities), int(any(requests.fits_in(left) for requests in asked))

    return {name: rank(name, own) for name, own in of_node.items()}


@frozen
class Done:
    """What went wrong, each with its subject, and what was answered for each node's pods that were asked to leave."""

    faults: tuple[tuple[str, Fault], ...] = ()
    answers: tuple[tuple[str, tuple[Eviction, ...]], ...] = ()


class Hands:
    """Works in the background, one set of chores at a time. ``wake`` is called when it is done."""

    def __init__(self, host: Host, wake: Work) -> None:
        self._host, self._wake = host, wake
        self._ended: SimpleQueue[Done] = SimpleQueue()
        self._done_at: dict[object, float] = {}
        self.is_busy = False

    @property
    def has_ended(self) -> bool:
        return not self._ended.empty()

    def due(self, chores: Chores) -> Chores:
        """Those that were not done a moment ago."""
        now = self._host.monotonic()
        self._done_at = {what: at for what, at in self._done_at.items() if now - at < _AGAIN_SECONDS}
        return Chores(
            registrations=tuple(each for each in chores.registrations if _named(each) not in self._done_at),
            nominations=tuple(each for each in chores.nominations if each not in self._done_at),
            marks=tuple(each for each in chores.marks if each.essence not in self._done_at),
            ranks=chores.ranks,
        )

    def begin(self, chores: Chores, ports: Ports) -> None:
        """They must not be busy."""
        self.is_busy = True
        at = self._host.monotonic()
        drains = (each.essence for each in chores.marks)
        self._done_at |= dict.fromkeys((*map(_named, chores.registrations), *chores.nominations, *drains), at)
        self._host.start("cluster", lambda: self._work(chores, ports))

    def ended(self) -> Done | None:
        """What came of the chores, once they are done; None before."""
        try:
            ended = self._ended.get_nowait()
        except Empty:
            return None
        self.is_busy = False
        return ended

    def _work(self, chores: Chores, ports: Ports) -> None:
        faults: list[tuple[str, Fault]] = []
        answers: list[tuple[str, tuple[Eviction, ...]]] = []
        for subject, work in chain(_steps(chores, ports), _drains(chores, ports, answers.append)):
            try:
                work()
            except Exception as error:
                faults.append((subject, as_fault(error)))
                if len(faults) >= _MOST_FAULTS:
                    break
        self._ended.put(Done(tuple(faults), tuple(answers)))
        self._wake()


def _named(registration: Registration) -> object:
    return registration.node, registration.step, tuple(sorted(registration.labels))


def _steps(chores: Chores, ports: Ports) -> Iterator[tuple[str, Work]]:
    """In the order in which pods gain by them; marks apart. Each must be done when the next is asked for.

    A pod that is tried in vain while its node is closed loses its nomination, so each new node is opened right after
    its own pods are told; and they are told again, for those that were tried in between. Nodes without pods of their
    own open last: those of others would go there.
    """
    openings, others = _openings(chores)
    opening = {each.registration.node for each in openings}
    told_first = tuple(each for each in chores.nominations if each.node not in opening)
    if told_first:
        yield _NOMINATIONS, partial(_nominate, ports, told_first)
    for step in (each for each in others if not each.opens):
        yield f"node {step.node}", partial(register, ports, step)
    for group in Turns(ports.nominator).groups(openings):
        for each in group:
            yield _NOMINATIONS, partial(_nominate, ports, each.own)
            yield f"node {each.registration.node}", partial(register, ports, each.registration)
        for each in group:
            yield _NOMINATIONS, partial(_nominate, ports, each.own)
    for step in (each for each in others if each.opens):
        yield f"node {step.node}", partial(register, ports, step)


def _openings(chores: Chores) -> tuple[list[Opening], list[Registration]]:
    """The nodes that are opened for pods of their own, and all other steps."""
    own: dict[str, list[Nomination]] = {}
    for told in chores.nominations:
        own.setdefault(told.node, []).append(told)
    openings = [
        Opening(each, tuple(own[each.node]), chores.ranks.get(each.node, ()))
        for each in chores.registrations
        if each.opens and each.node in own
    ]
    apart = {each.registration.node for each in openings}
    return openings, [each for each in chores.registrations if each.node not in apart]


def _drains(chores: Chores, ports: Ports, answered: Answered) -> list[tuple[str, Work]]:
    return [(f"node {each.node}", partial(_drain, ports, each, answered)) for each in chores.marks]


def register(ports: Ports, registration: Registration) -> None:
    """Take a node one step on."""
    node, labels = registration.node, registration.labels
    match registration.step:
        case Step.REGISTER:
            ports.registrar.register(node, labels, registration.taints, hold=False)
        case Step.HOLD:
            ports.registrar.register(node, labels, registration.taints, hold=True)
        case Step.OPEN:
            ports.registrar.open(node, labels)
        case Step.LABEL:
            ports.registrar.label(node, labels)


def nominate_and_register(ports: Ports, chores: Chores) -> None:
    """Both for a pass that waits for it. Raises Fault when a node cannot be registered; pods bind untold as well."""
    for subject, step in _steps(chores, ports):
        with suppress(Fault) if subject == _NOMINATIONS else nullcontext():
            step()


def _nominate(ports: Ports, nominations: tuple[Nomination, ...]) -> None:
    """The first refusal ends it: what one pod is refused, all are."""
    for each in nominations:
        refusal = ports.nominator.nominate(each.pod, each.node)
        if refusal:
            raise Fault(f"pods are not nominated to their nodes: {refusal}", "kube-scheduler binds them by itself")


def _drain(ports: Ports, drain: Drain, answered: Answered) -> None:
    answers = drain_now(ports, drain)
    if answers is not None:
        answered((drain.node, answers))


def drain_now(ports: Ports, drain: Drain) -> tuple[Eviction, ...] | None:
    """Mark the node and have its pods leave: what was answered for each, None where there is no such node. Those whose
    time is over come first, since nothing may keep them waiting. Raises Fault."""
    if not ports.drainer.mark(drain.node, drain.mark):
        return None
    return (*ports.drainer.delete(drain.forced), *ports.drainer.evict(drain.pods))
