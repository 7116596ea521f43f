"""The checker itself: of pods that are tied to others, to ports and to volumes, what breaks a rule is found, by that
rule, and what is like it and breaks none is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import Taint
from engine.model.pod import DaemonSet, Pod
from engine.model.workload import (
    AttachLimit,
    Namespace,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Workload,
)
from tests.builders import ANYTHING, daemon_set, requirement, taint, toleration
from tests.scheduling.checker.places import HOSTNAME, Place, World
from tests.scheduling.checker.ties import torn_ties
from tests.scheduling.tied_pods import ANY, WEB, port, spread, term, tied

RACK = "example.com/rack"
EBS = "ebs.csi.aws.com"


def place(
    name: str,
    zone: str = "a",
    *planned: Pod,
    bound: Iterable[Pod] = (),
    taints: Iterable[Taint] = (),
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, int] | None = None,
) -> Place:
    told = {HOSTNAME: name, keys.ZONE: zone, **(labels or {})}
    return Place(name, told, tuple(taints), allocatable or {}, tuple(bound), planned)


def broken(*places: Place, workload: Workload | None = None, daemon_sets: Iterable[DaemonSet] = ()) -> set[str]:
    """The rules that are broken, and in whatever order the places are."""
    rules = set()
    for order in permutations(places):
        rules.add(frozenset(e.rule for e in torn_ties(World(order, tuple(daemon_sets), workload or Workload()))))
    (same,) = rules
    return set(same)


def webs(count: int, *, first: int = 0, **more: object) -> list[Pod]:
    return [tied(f"web-{number}", **more) for number in range(first, first + count)]  # type: ignore[arg-type]


BY_ZONE = spread(keys.ZONE)
SPREAD = {"topology-spread"}


class TestTopologySpread:
    def test_a_domain_holds_no_more_than_the_least_and_the_skew(self) -> None:
        assert broken(place("one", "a", *webs(2, spreads=[BY_ZONE])), place("two", "b")) == SPREAD
        assert broken(place("one", "a", *webs(1, spreads=[BY_ZONE])), place("two", "b")) == set()
        wider = spread(keys.ZONE, max_skew=2)
        assert broken(place("one", "a", *webs(2, spreads=[wider])), place("two", "b")) == set()

    def test_domains_are_of_the_key_and_not_of_the_node(self) -> None:
        one, other, third = webs(3, spreads=[BY_ZONE])
        assert broken(place("one", "a", one), place("two", "a", other), place("three", "b")) == SPREAD
        assert broken(place("one", "a", one), place("two", "a", other), place("three", "b", third)) == set()

    def test_bound_pods_count_and_may_be_uneven_already(self) -> None:
        there = webs(3, first=10)
        (new,) = webs(1, spreads=[BY_ZONE])
        assert broken(place("one", "a", new, bound=there), place("two", "b")) == SPREAD
        assert broken(place("one", "a", bound=there), place("two", "b", new)) == set()

    @pytest.mark.parametrize(
        "counts_not",
        [
            tied("other", "db"),
            tied("going", deleting=True),
            tied("foreign", namespace="elsewhere"),
        ],
    )
    def test_only_selected_pods_of_its_namespace_count_that_are_not_going(self, counts_not: Pod) -> None:
        (new,) = webs(1, spreads=[BY_ZONE])
        assert broken(place("one", "a", new, bound=[counts_not]), place("two", "b")) == set()
        assert broken(place("one", "a", new, bound=[tied("counted")]), place("two", "b")) == SPREAD

    def test_a_pod_that_its_own_selector_misses_adds_nothing(self) -> None:
        of_db = [tied(f"db-{number}", "db", spreads=[BY_ZONE]) for number in range(5)]
        assert broken(place("one", "a", *of_db, bound=[tied("web")]), place("two", "b")) == set()
        assert broken(place("one", "a", *of_db, bound=webs(2, first=10)), place("two", "b")) == SPREAD

    def test_with_few_domains_the_least_is_none(self) -> None:
        three = spread(keys.ZONE, min_domains=3)
        one, other = webs(2, spreads=[three])
        assert broken(place("one", "a", one), place("two", "b", other, bound=[tied("there")])) == SPREAD
        full = place("three", "c", bound=[tied("third")])
        assert broken(place("one", "a", one), place("two", "b", other, bound=[tied("there")]), full) == set()

    def test_nodes_that_its_node_affinity_leaves_out_are_no_domains(self) -> None:
        pods = webs(2, spreads=[BY_ZONE], selector={keys.ZONE: "a"})
        assert broken(place("one", "a", *pods), place("two", "b")) == set()
        ignoring = spread(keys.ZONE, honors_affinity=False)
        pods = webs(2, spreads=[ignoring], selector={keys.ZONE: "a"})
        assert broken(place("one", "a", *pods), place("two", "b")) == SPREAD

    def test_tainted_nodes_are_domains_unless_the_constraint_honors_taints(self) -> None:
        shut = place("two", "b", taints=[taint("gpu")])
        assert broken(place("one", "a", *webs(2, spreads=[BY_ZONE])), shut) == SPREAD
        honoring = spread(keys.ZONE, honors_taints=True)
        assert broken(place("one", "a", *webs(2, spreads=[honoring])), shut) == set()
        bearing = webs(2, spreads=[honoring], tolerations=[toleration("gpu")])
        assert broken(place("one", "a", *bearing), shut) == SPREAD

    def test_only_nodes_with_all_of_its_keys_count_and_only_they_take_it(self) -> None:
        both = [BY_ZONE, spread(RACK, max_skew=5)]
        racked = {RACK: "r1"}
        assert broken(place("one", "a", *webs(2, spreads=both), labels=racked), place("two", "b")) == set()
        assert broken(place("one", "a", *webs(1, spreads=both)), place("two", "b", labels=racked)) == SPREAD
        empty = place("two", "", labels={RACK: "r2"})
        assert broken(place("one", "a", *webs(2, spreads=[BY_ZONE])), empty) == set()

    def test_each_constraint_of_a_pod_holds(self) -> None:
        by_host = spread(HOSTNAME)
        pods = webs(4, spreads=[BY_ZONE, by_host])
        assert broken(place("one", "a", *pods[:2]), place("two", "b", *pods[2:])) == set()
        assert broken(place("one", "a", *pods[:2]), place("two", "b", *pods[2:]), place("three", "a")) == SPREAD

    def test_a_wish_and_a_selector_of_nothing_break_nothing(self) -> None:
        wishes = webs(3, spreads=[spread(keys.ZONE, is_required=False)])
        assert broken(place("one", "a", *wishes), place("two", "b")) == set()
        for selector in (None, ANY):
            pods = webs(3, spreads=[spread(keys.ZONE, selector=selector)])
            assert broken(place("one", "a", *pods), place("two", "b")) == set()

    def test_some_order_is_enough(self) -> None:
        """Pods without the constraint are counted, and come after it, or before it, as it needs them."""
        (asks,) = webs(1, spreads=[BY_ZONE])
        after = place("one", "a", asks, *webs(2, first=1))
        assert broken(after, place("two", "b")) == set()
        before = place("two", "b", *webs(1, first=5))
        assert broken(place("one", "a", asks, bound=webs(1, first=7)), before) == set()
        assert broken(place("one", "a", asks, bound=webs(2, first=7)), before) == SPREAD

    def test_constraints_that_need_each_other_can_leave_no_order(self) -> None:
        """Each waits until the other is bound."""
        of_web = tied("web", "web", spreads=[spread(keys.ZONE, selector=(requirement("app", "In", "db"),))])
        of_db = tied("db", "db", spreads=[spread(RACK, selector=WEB)])
        dbs, others = [tied(f"db-{number}", "db") for number in range(2)], webs(2, first=5)
        one = place("one", "a", of_web, bound=dbs, labels={RACK: "r1"})
        assert broken(one, place("two", "b", of_db, bound=others, labels={RACK: "r2"})) == SPREAD
        with_one_more = place("two", "b", of_db, tied("db-9", "db"), bound=others, labels={RACK: "r2"})
        assert broken(one, with_one_more) == set()


class TestPodAffinity:
    def test_a_pod_is_where_what_it_seeks_is(self) -> None:
        seeking = tied("db", "db", near=[term(keys.ZONE)])
        assert broken(place("one", "a", seeking), place("two", "b", bound=[tied("web")])) == {"pod-affinity"}
        assert broken(place("one", "a", seeking), place("two", "a", bound=[tied("web")])) == set()
        assert broken(place("one", "a", seeking), place("two", "a", tied("web"))) == set()

    def test_the_first_of_a_group_goes_anywhere_and_the_others_follow(self) -> None:
        group = webs(3, near=[term(keys.ZONE)])
        assert broken(place("one", "a", *group), place("two", "b")) == set()
        assert broken(place("one", "a", *group[:2]), place("two", "b", group[2])) == {"pod-affinity"}
        assert broken(place("one", "a", *group), place("two", "b", bound=[tied("there")])) == {"pod-affinity"}

    def test_only_who_meets_its_own_terms_is_a_first(self) -> None:
        alone = tied("db", "db", near=[term(keys.ZONE)])
        assert broken(place("one", "a", alone)) == {"pod-affinity"}

    def test_one_pod_meets_all_terms_together(self) -> None:
        terms = [term(keys.ZONE), term(keys.ZONE, (requirement("tier", "In", "gold"),))]
        seeking = tied("db", "db", near=terms)
        each = [tied("web"), tied("gold", "cache", labels={"tier": "gold"})]
        both = tied("both", labels={"tier": "gold"})
        assert broken(place("one", "a", seeking, bound=each)) == {"pod-affinity"}
        assert broken(place("one", "a", seeking, bound=[both])) == set()

    def test_a_node_without_the_key_takes_not_even_the_first(self) -> None:
        first = tied("web", near=[term(RACK)])
        assert broken(place("one", "a", first)) == {"pod-affinity"}
        assert broken(place("one", "a", first, labels={RACK: "r1"})) == set()

    def test_terminating_pods_count_and_those_of_other_namespaces_only_where_the_term_looks(self) -> None:
        seeking = tied("db", "db", near=[term(keys.ZONE)])
        assert broken(place("one", "a", seeking, bound=[tied("web", deleting=True)])) == set()
        elsewhere = tied("web", namespace="elsewhere")
        assert broken(place("one", "a", seeking, bound=[elsewhere])) == {"pod-affinity"}
        wider = tied("db", "db", near=[term(keys.ZONE, namespaces=("elsewhere",))])
        assert broken(place("one", "a", wider, bound=[elsewhere])) == set()

    def test_a_namespace_selector_looks_at_the_labels_of_namespaces(self) -> None:
        known = Workload(namespaces=(Namespace("default"), Namespace("elsewhere", {"team": "a"})))
        by_team = term(keys.ZONE, namespaces=(), namespace_selector=(requirement("team", "In", "a"),))
        seeking = tied("db", "db", near=[by_team])
        assert broken(place("one", "a", seeking, bound=[tied("web", namespace="elsewhere")]), workload=known) == set()
        assert broken(place("one", "a", seeking, bound=[tied("web")]), workload=known) == {"pod-affinity"}
        every = tied("db", "db", near=[term(keys.ZONE, namespaces=(), namespace_selector=ANY)])
        assert broken(place("one", "a", every, bound=[tied("web", namespace="unknown")]), workload=known) == set()


class TestAntiAffinity:
    APART = frozenset({"anti-affinity"})

    def test_a_pod_is_kept_from_the_domains_of_those_that_it_names(self) -> None:
        kept = tied("db", "db", apart=[term(keys.ZONE)])
        assert broken(place("one", "a", kept), place("two", "a", bound=[tied("web")])) == self.APART
        assert broken(place("one", "a", kept), place("two", "a", tied("web"))) == self.APART
        assert broken(place("one", "a", kept), place("two", "b", tied("web"))) == set()

    def test_placed_pods_keep_others_out_as_well(self) -> None:
        there = tied("db", "db", apart=[term(HOSTNAME)])
        assert broken(place("one", "a", tied("web"), bound=[there])) == self.APART
        assert broken(place("one", "a", tied("cache", "cache"), bound=[there])) == set()
        assert broken(place("one", "a", bound=[there]), place("two", "a", tied("web"))) == set()

    def test_pods_that_are_kept_from_their_own_are_one_to_a_domain(self) -> None:
        group = webs(2, apart=[term(HOSTNAME)])
        assert broken(place("one", "a", *group)) == self.APART
        assert broken(place("one", "a", group[0]), place("two", "a", group[1])) == set()

    def test_what_bound_pods_broke_among_themselves_is_no_fault_of_the_plan(self) -> None:
        there = webs(2, apart=[term(HOSTNAME)])
        assert broken(place("one", "a", tied("db", "db"), bound=there)) == set()

    def test_a_node_without_the_key_is_in_no_domain(self) -> None:
        assert broken(place("one", "a", *webs(2, apart=[term(RACK)]))) == set()
        assert broken(place("one", "a", *webs(2, apart=[term(RACK)]), labels={RACK: "r1"})) == self.APART

    def test_terms_look_at_their_namespaces(self) -> None:
        kept = tied("db", "db", apart=[term(HOSTNAME)])
        assert broken(place("one", "a", kept, bound=[tied("web", namespace="elsewhere")])) == set()
        wider = tied("db", "db", apart=[term(HOSTNAME, namespaces=(), namespace_selector=ANY)])
        assert broken(place("one", "a", wider, bound=[tied("web", namespace="elsewhere")])) == self.APART

    def test_pods_that_pre_emption_takes_away_keep_nobody_out(self) -> None:
        victim = tied("web", priority=-10)
        urgent = evolve(tied("db", "db", apart=[term(HOSTNAME)], priority=5), nominated_node_name="one")
        assert broken(place("one", "a", urgent, bound=[victim])) == set()
        assert broken(place("one", "a", urgent, bound=[tied("web", priority=10)])) == self.APART
        assert broken(place("two", "a", urgent, bound=[victim])) == self.APART


class TestHostPorts:
    @pytest.mark.parametrize(
        ("one", "other", "rules"),
        [
            (port(80), port(80), {"host-ports"}),
            (port(80), port(81), set()),
            (port(53), port(53, "UDP"), set()),
            (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.2"), set()),
            (port(80, ip="10.0.0.1"), port(80, ip="10.0.0.1"), {"host-ports"}),
            (port(80, ip="10.0.0.1"), port(80), {"host-ports"}),
            (port(80, ip="0.0.0.0"), port(80, ip="10.0.0.2"), {"host-ports"}),
        ],
        ids=str,
    )
    def test_a_port_is_there_once_on_a_node(self, one: object, other: object, rules: set[str]) -> None:
        new, there = tied("new", ports=[one]), tied("there", ports=[other])  # type: ignore[list-item]
        assert broken(place("one", "a", new, bound=[there])) == rules
        assert broken(place("one", "a", new, there)) == rules
        assert broken(place("one", "a", new), place("two", "a", bound=[there])) == set()

    def test_daemons_take_theirs_where_they_will_run(self) -> None:
        plain = daemon_set(tolerations=[])
        exporter = evolve(plain, placing=evolve(plain.placing, host_ports=(port(9100),)))
        new = tied("new", ports=[port(9100)], tolerations=[ANYTHING])
        assert broken(place("one", "a", new), daemon_sets=[exporter]) == {"host-ports"}
        assert broken(place("one", "a", new, taints=[taint("gpu")]), daemon_sets=[exporter]) == set()

    def test_one_pod_may_name_a_port_twice(self) -> None:
        assert broken(place("one", "a", tied("new", ports=[port(80), port(80, ip="10.0.0.1")]))) == set()


FAST = StorageClass("fast", EBS, waits_for_consumer=True)


def disks(
    *claims: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume] = (),
    classes: Iterable[StorageClass] = (FAST,),
    limits: Iterable[AttachLimit] = (),
) -> Workload:
    return Workload(
        volume_claims=claims, volumes=tuple(volumes), storage_classes=tuple(classes), attach_limits=tuple(limits)
    )


def disk(name: str = "disk", *, storage_class: str = "fast", volume: str = "", **more: object) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(ObjectKey("default", name), storage_class, volume, **more)  # type: ignore[arg-type]


def volume(name: str, *terms: tuple[str, str]) -> PersistentVolume:
    return PersistentVolume(name, "fast", EBS, tuple((requirement(key, "In", value),) for key, value in terms))


class TestVolumes:
    NEW = tied("new", claims=["disk"])
    FAULT = frozenset({"volumes"})

    def test_a_claim_is_there_whole_and_of_the_namespace_of_its_pod(self) -> None:
        assert broken(place("one", "a", self.NEW), workload=disks()) == self.FAULT
        assert broken(place("one", "a", self.NEW), workload=disks(disk())) == set()
        assert broken(place("one", "a", self.NEW), workload=disks(disk(deleting=True))) == self.FAULT
        assert broken(place("one", "a", self.NEW), workload=disks(disk(phase="Lost"))) == self.FAULT
        other = tied("new", claims=["disk"], namespace="elsewhere")
        assert broken(place("one", "a", other), workload=disks(disk())) == self.FAULT

    @pytest.mark.parametrize("key", [keys.ZONE, "topology.ebs.csi.aws.com/zone"])
    def test_a_volume_is_mounted_where_its_node_affinity_holds(self, key: str) -> None:
        there = disks(disk(volume="pv"), volumes=[volume("pv", (key, "a"), (key, "c"))])
        assert broken(place("one", "a", self.NEW), workload=there) == set()
        assert broken(place("one", "b", self.NEW), workload=there) == self.FAULT
        assert broken(place("one", "c", self.NEW), workload=there) == set()
        assert broken(place("one", "a", self.NEW), workload=disks(disk(volume="pv"))) == self.FAULT

    def test_a_volume_that_nobody_will_make_for_the_pod_keeps_it_pending(self) -> None:
        at_once, by_hand = StorageClass("fast", EBS), StorageClass("fast", "kubernetes.io/no-provisioner", False, True)
        for classes in ([at_once], [by_hand], []):
            assert broken(place("one", "a", self.NEW), workload=disks(disk(), classes=classes)) == self.FAULT

    def test_a_class_makes_volumes_where_it_may(self) -> None:
        in_b = [evolve(FAST, zones=("b",))]
        by_term = [evolve(FAST, zones=("b",), allowed_topologies=((requirement(keys.ZONE, "In", "b"),),))]
        for classes in (in_b, by_term):
            assert broken(place("one", "a", self.NEW), workload=disks(disk(), classes=classes)) == self.FAULT
            assert broken(place("one", "b", self.NEW), workload=disks(disk(), classes=classes)) == set()

    def test_a_volume_that_is_being_made_waits_for_its_node(self) -> None:
        chosen = disks(disk(selected_node="two"))
        assert broken(place("one", "a", self.NEW), place("two", "a"), workload=chosen) == self.FAULT
        assert broken(place("one", "a"), place("two", "a", self.NEW), workload=chosen) == set()

    def test_pods_of_one_volume_to_be_made_are_in_one_zone(self) -> None:
        other = tied("other", claims=["disk"])
        assert broken(place("one", "a", self.NEW), place("two", "b", other), workload=disks(disk())) == self.FAULT
        assert broken(place("one", "a", self.NEW), place("two", "a", other), workload=disks(disk())) == set()
        shared = [StorageClass("fast", "efs.csi.aws.com", waits_for_consumer=True)]
        everywhere = disks(disk(), classes=shared)
        assert broken(place("one", "a", self.NEW), place("two", "b", other), workload=everywhere) == set()

    def test_a_claim_of_one_pod_has_one(self) -> None:
        other, alone = tied("other", claims=["disk"]), disks(disk(access_modes=("ReadWriteOncePod",)))
        assert broken(place("one", "a", self.NEW, bound=[other]), workload=alone) == self.FAULT
        assert broken(place("one", "a", self.NEW), workload=alone) == set()

    def test_a_node_takes_as_many_different_volumes_as_it_says(self) -> None:
        pods = [tied(f"new-{number}", claims=[f"disk-{number}"]) for number in range(3)]
        again = tied("again", claims=["disk-0", "disk-1"])
        claims, two = [disk(f"disk-{number}") for number in range(3)], [AttachLimit("one", EBS, 2)]
        there = disks(*claims, limits=two)
        assert broken(place("one", "a", *pods[:2], again), workload=there) == set()
        assert broken(place("one", "a", *pods), workload=there) == {"attach-limits"}
        assert broken(place("one", "a", pods[2], bound=pods[:2]), workload=there) == {"attach-limits"}
        assert broken(place("one", "a", again, bound=pods), workload=there) == set()
        assert broken(place("two", "a", *pods), workload=there) == set()
        others = disks(*claims, limits=[AttachLimit("one", "efs.csi.aws.com", 0)])
        assert broken(place("one", "a", *pods), workload=others) == set()

    def test_a_node_to_come_takes_as_many_as_its_claim_says(self) -> None:
        pods = [tied(f"new-{number}", claims=[f"disk-{number}"]) for number in range(2)]
        there = disks(*(disk(f"disk-{number}") for number in range(2)))
        few = {f"attachable-volumes-{EBS}": 1}
        assert broken(place("new", "a", *pods, allocatable=few), workload=there) == {"attach-limits"}
        assert broken(place("new", "a", *pods[:1], allocatable=few), workload=there) == set()
