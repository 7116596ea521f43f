"""When nodes are opened: after their own pods were tried, and before they are tried again."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from engine.actuate.nominate import Waiting
from engine.model.fault import Fault
from engine.model.plan import Nomination
from engine.model.pod import PodKey
from engine.reconcile.openings import Opening, Pace, Turns
from engine.reconcile.registrations import Registration, Step


def key(number: int) -> PodKey:
    return PodKey("ai", f"p-{number:03d}")


def opening(node: str, *pods: int, rank: tuple[int, ...] = ()) -> Opening:
    own = tuple(Nomination(pod=key(each), node=node) for each in pods)
    return Opening(Registration(node, Step.REGISTER, {}), own, rank)


@define
class Scheduler:
    """Tries one pod, the one that was tried longest ago, in each ``seconds_a_try`` for as long as ``busy`` says."""

    versions: dict[PodKey, int]
    busy: int = 0
    seconds_a_try: float = 0.01
    now: float = 0.0
    answers: bool = True
    slept: float = field(default=0.0)

    @property
    def version(self) -> int:
        return max(self.versions.values(), default=0) + 1

    def nominate(self, pod: PodKey, node_name: str) -> str:
        raise AssertionError("nothing is told here")

    def waiting(self) -> Waiting | None:
        if not self.answers:
            raise Fault("the API server does not answer", "wait")
        return Waiting(self.version, dict(self.versions))

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        for _ in range(min(self.busy, round(seconds / self.seconds_a_try))):
            self.busy -= 1
            self.versions[min(self.versions, key=self.versions.__getitem__)] = self.version + 1

    def groups(self, openings: Iterable[Opening]) -> list[list[str]]:
        """Each group's nodes; opening one has all that wait tried again."""
        found = []
        turns = Turns(self, Pace(lambda: self.now, self.sleep))
        for group in turns.groups(tuple(openings)):
            found.append([each.registration.node for each in group])
            for each in group:
                for told in each.own:
                    self.versions.pop(told.pod, None)
            self.busy = len(self.versions)
        return found


def scheduler(pods: int, busy: int = 0) -> Scheduler:
    return Scheduler({key(number): number + 1 for number in range(pods)}, busy)


def test_a_node_opens_at_once_when_nobody_waits_but_its_own_pods() -> None:
    alone = scheduler(2)
    assert alone.groups([opening("n", 0, 1)]) == [["n"]]
    assert alone.slept == 0


def test_few_pods_are_let_in_node_by_node_once_all_is_quiet() -> None:
    few = scheduler(3, busy=20)
    assert sorted(few.groups([opening("a", 0), opening("b", 1), opening("c", 2)])) == [["a"], ["b"], ["c"]]
    assert few.slept > 0.2


def test_of_many_pods_an_eighth_is_let_in_at_once_and_those_that_were_tried_last() -> None:
    nodes = [opening(f"n-{number:02d}", number * 2, number * 2 + 1) for number in range(40)]
    first, *_ = scheduler(80).groups(nodes)
    # Within the group those are first that will be tried first.
    assert first == [f"n-{number}" for number in range(35, 40)]


def test_the_next_are_let_in_only_after_their_pods_were_tried_once_more() -> None:
    many = scheduler(80)
    nodes = [opening(f"n-{number:02d}", number * 2, number * 2 + 1) for number in range(40)]
    turns = Turns(many, Pace(lambda: many.now, many.sleep)).groups(nodes)
    for each in next(turns):
        for told in each.own:
            del many.versions[told.pod]
    opened, many.busy = many.version, 1_000
    second = next(turns)
    assert all(many.versions[told.pod] > opened for each in second for told in each.own)


def test_nodes_of_higher_rank_come_first_whatever_was_tried() -> None:
    nodes = [opening("urgent", 0, rank=(-9,)), opening("other", 2, rank=(0,)), opening("another", 1, rank=(0,))]
    assert scheduler(4).groups(nodes) == [["urgent"], ["other"], ["another"]]


def test_a_cluster_that_is_never_quiet_is_waited_for_so_long_and_no_longer() -> None:
    restless = scheduler(3, busy=10**9)
    assert [len(group) for group in restless.groups([opening("a", 0), opening("b", 1)])] == [1, 1]
    assert restless.slept < 3


def test_nodes_open_one_by_one_in_their_order_where_nobody_tells_how_pods_stand() -> None:
    silent = scheduler(80)
    silent.answers = False
    assert silent.groups([opening("a", 0), opening("b", 79)]) == [["a"], ["b"]]
    assert silent.slept == 0
