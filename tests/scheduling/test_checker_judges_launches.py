"""The checker itself: launches into reservations and of pools that ask for minValues, and where ties are looked for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.ledger import Unavailable
from engine.model.plan import LaunchReason, Placement, Plan, RelaxedMinValues
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodeClass
from engine.model.reservation import CapacityReservation, MatchCriteria, ReservationKind, ReservationTerm
from engine.model.snapshot import Snapshot
from tests.builders import M5_LARGE, NOON, claim, document, minutes, node_class, node_pool, requirement
from tests.decide.world import policy
from tests.scheduling.checker.places import world_of
from tests.scheduling.checker.reservations import within_reservations
from tests.scheduling.random_clusters import Cluster
from tests.scheduling.test_checker_finds_faults import GPU, SMALL, a_cluster, changed, of_pool, planned, rules_broken
from tests.scheduling.tied_pods import spread, term, tied

ODCR = CapacityReservation("cr-1", "m5.large", "us-east-1a", total=2, available=1, owner_id="me", tags={"team": "a"})
BY_ID, BY_TAG = ReservationTerm(id="cr-1"), ReservationTerm(tags={"team": "*"})


def reserved(count: int, name: str = "cr-1", *, zone: str = "us-east-1a") -> Plan:
    """A plan with so many launches into a reservation."""
    plan = planned(a_cluster())
    launch = of_pool(plan, "cpu")
    inputs = evolve(launch.claim.inputs, zone=zone, capacity_type=keys.RESERVED, capacity_reservation_id=name)
    labels = {**launch.claim.labels, keys.CAPACITY_RESERVATION_ID: name}
    made = [evolve(launch.claim, name=f"cpu-{number}", inputs=inputs, labels=labels) for number in range(count)]
    return evolve(plan, launches=tuple(evolve(launch, claim=each) for each in made))


def told(
    plan: Plan, reservation: CapacityReservation | None, *terms: ReservationTerm, seen: Snapshot | None = None
) -> list[str]:
    snapshot = seen or a_cluster().snapshot
    shown = () if reservation is None else (reservation,)
    snapshot = evolve(snapshot, cloud=evolve(snapshot.cloud, reservations=shown))
    own: NodeClass = node_class(capacity_reservation_selector_terms=terms)
    return [str(each) for each in within_reservations(snapshot, plan, policy(node_pool("cpu"), node_classes=(own,)))]


class TestReservations:
    @pytest.mark.parametrize("chosen", [BY_ID, BY_TAG, ReservationTerm(owner_id="me", tags={"team": "a"})], ids=str)
    def test_a_launch_may_use_a_reservation_that_its_class_selects(self, chosen: ReservationTerm) -> None:
        assert told(reserved(1), ODCR, chosen) == []

    @pytest.mark.parametrize(
        "chosen",
        [
            ReservationTerm(id="cr-2"),
            ReservationTerm(tags={"team": "b"}),
            ReservationTerm(tags={"team": "a"}, owner_id="you"),
            ReservationTerm(tags={"team": "a"}, match_criteria=MatchCriteria.OPEN),
        ],
        ids=str,
    )
    def test_a_reservation_that_no_term_selects_is_not_used(self, chosen: ReservationTerm) -> None:
        assert told(reserved(1), ODCR, chosen) != []

    def test_a_reservation_takes_what_is_available(self) -> None:
        assert told(reserved(2), ODCR, BY_ID) != []
        assert told(reserved(2), evolve(ODCR, available=2), BY_ID) == []
        assert told(reserved(1), evolve(ODCR, available=0), BY_ID) != []

    def test_machines_on_their_way_that_ec2_does_not_count_yet_are_taken_off(self) -> None:
        coming = claim("cpu-coming", M5_LARGE, pool=node_pool("cpu"))
        coming = evolve(coming, inputs=evolve(coming.inputs, capacity_reservation_id="cr-1"))
        seen = evolve(a_cluster().snapshot, document=document(coming))
        assert told(reserved(1), ODCR, BY_ID, seen=seen) != []
        gone = evolve(seen, cloud=evolve(seen.cloud, absent_claims=("cpu-coming",)))
        assert told(reserved(1), ODCR, BY_ID, seen=gone) == []

    @pytest.mark.parametrize(
        "change",
        [
            {"state": "expired"},
            {"ends_at": NOON},
            {"ends_at": NOON + minutes(30), "kind": ReservationKind.CAPACITY_BLOCK},
            {"zone": "us-east-1b"},
            {"instance_type": "g5.xlarge"},
            {"id": "cr-2"},
        ],
        ids=str,
    )
    def test_a_reservation_that_is_over_or_another_is_not_used(self, change: dict[str, object]) -> None:
        assert told(reserved(1), evolve(ODCR, **change), BY_ID) != []  # type: ignore[arg-type]
        assert told(reserved(1), None, BY_ID) != []

    def test_one_that_ends_late_enough_is(self) -> None:
        ends = NOON + minutes(30)
        assert told(reserved(1), evolve(ODCR, ends_at=ends), BY_ID) == []
        block = evolve(ODCR, ends_at=NOON + timedelta(hours=1), kind=ReservationKind.CAPACITY_BLOCK)
        assert told(reserved(1), block, BY_ID) == []

    def test_only_reserved_launches_name_a_reservation(self) -> None:
        plan = reserved(1)
        (launch,) = plan.launches
        inputs = evolve(launch.claim.inputs, capacity_type=keys.ON_DEMAND)
        astray = evolve(launch, claim=evolve(launch.claim, inputs=inputs))
        assert told(evolve(plan, launches=(astray,)), ODCR, BY_ID) != []


def asking(key: str, least: int, *, best_effort: bool = False) -> Callable[[Cluster], Cluster]:
    def change(cluster: Cluster) -> Cluster:
        extra = evolve(requirement(key, "Exists"), min_values=least)
        pools = tuple(
            evolve(pool, requirements=(*pool.requirements, extra), min_values_best_effort=best_effort)
            if pool.name == "gpu"
            else pool
            for pool in cluster.policy.node_pools
        )
        return evolve(cluster, policy=evolve(cluster.policy, node_pools=pools))

    return change


class TestMinValues:
    """The GPU pool's pod fits two types of one family, in three zones."""

    @pytest.mark.parametrize(
        ("key", "most"), [(keys.INSTANCE_TYPE, 2), (keys.INSTANCE_FAMILY, 1), (keys.ZONE, 3), (keys.CAPACITY_TYPE, 2)]
    )
    def test_a_launch_could_have_been_of_so_many_values(self, key: str, most: int) -> None:
        cluster = a_cluster()
        plan = planned(cluster)
        assert "min-values" not in rules_broken(asking(key, most)(cluster), plan)
        assert "min-values" in rules_broken(asking(key, most + 1)(cluster), plan)

    def test_all_pods_of_the_launch_narrow_it(self) -> None:
        cluster = asking(keys.INSTANCE_TYPE, 2)(a_cluster())
        plan = planned(a_cluster())
        large = tuple(
            evolve(pod, placing=evolve(pod.placing, requests=type(pod.placing.requests)({"cpu": 20_000, "pods": 1})))
            if pod.key == SMALL
            else pod
            for pod in cluster.snapshot.pods
        )
        both = changed("gpu", lambda launch: evolve(launch, pods=(GPU, SMALL)))(plan)
        narrowed = evolve(cluster, snapshot=evolve(cluster.snapshot, pods=large))
        assert "min-values" in rules_broken(narrowed, both)

    def test_offerings_that_are_out_are_not_counted(self) -> None:
        cluster = asking(keys.ZONE, 3)(a_cluster())
        out = Unavailable(until=NOON + minutes(3), refusals=1, code="InsufficientInstanceCapacity")
        of_c = {each.key: out for each in cluster.catalog.offerings if each.zone == "us-east-1c"}
        ledger = evolve(cluster.snapshot.ledger, unavailable=of_c)
        barred = evolve(cluster, snapshot=evolve(cluster.snapshot, ledger=ledger))
        assert "min-values" in rules_broken(barred, planned(a_cluster()))

    def test_a_pool_that_does_what_it_can_tells_it(self) -> None:
        cluster = asking(keys.ZONE, 4, best_effort=True)(a_cluster())
        plan = planned(a_cluster())
        assert "min-values" in rules_broken(cluster, plan)
        relaxed = (RelaxedMinValues(keys.ZONE, 4, 3),)
        assert "min-values" not in rules_broken(cluster, changed("gpu", lambda one: evolve(one, relaxed=relaxed))(plan))

    def test_promised_nodes_are_not_asked(self) -> None:
        cluster = asking(keys.ZONE, 4)(a_cluster())
        based = changed("gpu", lambda one: evolve(one, reason=LaunchReason.BASE_CAPACITY))(planned(a_cluster()))
        assert "min-values" not in rules_broken(cluster, based)


class TestWhereTiesAreLookedFor:
    """On a standing node, a claim in flight and a launch: whatever the plan leaves behind."""

    def tie(self, cluster: Cluster, key: PodKey, pod: Pod) -> Cluster:
        pods = tuple(
            evolve(each, labels=pod.labels, placing=evolve(each.placing, spreads=pod.placing.spreads))
            if each.key == key
            else each
            for each in cluster.snapshot.pods
        )
        return evolve(cluster, snapshot=evolve(cluster.snapshot, pods=pods))

    def bound(self, cluster: Cluster, *pods: Pod) -> Cluster:
        return evolve(cluster, snapshot=evolve(cluster.snapshot, pods=(*cluster.snapshot.pods, *pods)))

    def test_a_planned_pod_meets_those_that_are_bound_to_its_node(self) -> None:
        cluster = a_cluster()
        plan = planned(cluster)
        keeps_out = tied("db", "db", apart=[term(keys.HOSTNAME, selector=())], node="node-1", cpu="0")
        assert "anti-affinity" in rules_broken(self.bound(cluster, keeps_out), plan)
        nameless = tuple(
            evolve(each, labels={key: value for key, value in each.labels.items() if key != keys.HOSTNAME})
            for each in cluster.snapshot.nodes
        )
        cluster = evolve(cluster, snapshot=evolve(cluster.snapshot, nodes=nameless))
        assert "anti-affinity" not in rules_broken(self.bound(cluster, keeps_out), plan)

    def test_a_launch_is_a_domain_of_its_own(self) -> None:
        """The launched nodes have none of the pods that are spread, so that one more elsewhere is too many."""
        cluster = a_cluster()
        plan = planned(cluster)
        per_host = tied("web", spreads=[spread(keys.HOSTNAME, honors_affinity=False)])
        on_launch = self.tie(cluster, GPU, per_host)
        assert "topology-spread" not in rules_broken(on_launch, plan)
        more = self.tie(self.tie(cluster, GPU, per_host), PodKey("default", "big"), per_host)
        crowded = changed("gpu", lambda one: evolve(one, pods=(GPU, PodKey("default", "big"))))
        emptied = changed("cpu", lambda one: evolve(one, pods=()))
        assert "topology-spread" in rules_broken(more, emptied(crowded(plan)))

    def test_claims_in_flight_are_places_and_lost_ones_are_not(self) -> None:
        cluster = a_cluster()
        coming = claim("cpu-coming", M5_LARGE, pool=node_pool("cpu"))
        seen = evolve(cluster.snapshot, document=document(*cluster.snapshot.document.claims, coming))  # type: ignore[union-attr]
        plan = evolve(planned(cluster), placements=(Placement(SMALL, None, "cpu-coming"),))
        places = {place.name: place for place in world_of(seen, plan, cluster.policy).places}
        assert [pod.key for pod in places["cpu-coming"].planned] == [SMALL]
        assert places["cpu-coming"].domain(keys.HOSTNAME) == "cpu-coming"
        gone = evolve(seen, cloud=evolve(seen.cloud, absent_claims=("cpu-coming",)))
        left = world_of(gone, evolve(plan, placements=()), cluster.policy)
        assert {place.name for place in left.places} == {"node-1", *(each.claim.name for each in plan.launches)}
