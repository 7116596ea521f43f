"""What is remembered of one class for the next is what would be found anew."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.quantity import Resources
from engine.scheduling.fits import Fits
from engine.scheduling.groups import pod_classes
from engine.scheduling.places import Alike, Group, Place
from tests.builders import pod

PLACES = [
    Place({}, (), is_accelerated, in_flight, ("pool", "m5.large", "on-demand", "us-east-1a"), (number,))
    for number, (is_accelerated, in_flight) in enumerate([(False, False), (False, True), (True, False), (True, True)])
]
[ASKING] = pod_classes([pod("p", cpu="1")])


def content(groups: tuple[Group, Group]) -> list[list[object]]:
    return [[fit.alike.order for fit in fits] for group in groups for fits in (group.first, group.last)]


nodes = st.builds(
    lambda place, cpu, is_empty: Alike.of(
        PLACES[place], Resources.parse({"cpu": cpu, "memory": "8Gi", "pods": 10}), is_empty
    ),
    st.integers(0, len(PLACES) - 1),
    st.integers(0, 4),
    st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(nodes, st.booleans()), min_size=1, max_size=40))
def test_nodes_that_come_and_go_are_known_as_if_asked_anew(moves: list[tuple[Alike, bool]]) -> None:
    members: dict[Alike, object] = {}
    changed: list[Alike] = []
    known: dict[tuple[object, ...], Alike] = {}
    fits, offers = Fits(), dict[object, object]()
    for found, leaves in moves:
        alike = known.setdefault((found.place.content, found.room, found.is_empty), found)
        if leaves:
            members.pop(alike, None)
        else:
            members[alike] = None
        changed.append(alike)
        seen = fits.of(ASKING, offers, members, changed)  # type: ignore[arg-type]
        assert content(seen) == content(Fits().of(ASKING, {}, members, changed))


def test_a_class_that_asks_for_more_is_asked_about_anew() -> None:
    small, large = (
        Alike.of(PLACES[0], Resources.parse({"cpu": cpu, "memory": "8Gi", "pods": 10}), False) for cpu in (1, 4)
    )
    members, fits, offers = {small: None, large: None}, Fits(), dict[object, object]()
    assert len(fits.of(ASKING, offers, members, [small, large])[0].first) == 2  # type: ignore[arg-type]
    greedy = evolve(ASKING, requests=Resources.parse({"cpu": "2"}))
    assert [fit.alike for fit in fits.of(greedy, offers, members, [small, large])[0].first] == [large]  # type: ignore[arg-type]
