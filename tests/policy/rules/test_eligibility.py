"""What requirement rules decide for pods, and how seldom they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import combinations

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.constraint import Operator, Requirement
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.rule import Enforcement, Selection
from engine.policy.rules import memo
from engine.policy.rules.compiled import Bundle, CompiledRule
from engine.policy.rules.eligibility import Eligibility
from engine.policy.rules.pass_facts import PoolMarket
from engine.policy.rules.ruling import LETS_ALL, Bar, Ruling, TypeAt
from tests.builders import G5_12XLARGE, G5_XLARGE, NOON, P5_48XLARGE, catalog, environment, node_pool, pod, snapshot
from tests.policy.rules.python_rules import Facts, PythonProgram, bundle, main_of, rule

TYPES = (G5_XLARGE, G5_12XLARGE, P5_48XLARGE)
EVERY = tuple(sorted((kind.name, capacity) for kind in TYPES for capacity in (keys.ON_DEMAND, keys.SPOT)))
CATALOG = catalog(TYPES)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    memo.forget()
    yield
    memo.forget()


def labelled(name: str, namespace: str = "default", **labels: str) -> Pod:
    return evolve(pod(name, gpu=1, namespace=namespace), labels=labels)


def market(name: str = "gpu", types: Sequence[TypeAt] = EVERY, nodes: int = 0, **labels: str) -> PoolMarket:
    return PoolMarket(node_pool(name, labels=labels), nodes=nodes, gpus=0, types=tuple(types))


def eligibility(
    rules: Bundle,
    *markets: PoolMarket,
    pods: Sequence[Pod] = (),
    sold: Catalog = CATALOG,
    at: float = 0,
) -> Eligibility:
    facts = evolve(snapshot(pods=pods), taken_at=NOON + timedelta(minutes=at))
    return Eligibility(rules, Policy((), (), digest="test"), sold, environment(), facts, markets or (market(),))


def at_least(gib: int) -> Callable[[Facts], object]:
    return lambda facts: facts["instanceType"]["gpuMemoryGiB"] >= gib


def names(ruling: Ruling) -> set[str]:
    """The types that are barred at any capacity type."""
    return {name for (name, _), _ in ruling.bars}


def raises(facts: Facts) -> object:
    raise ValueError("no such key")


def raises_for_p5(facts: Facts) -> object:
    if facts["instanceType"]["name"] == "p5.48xlarge":
        raise ValueError("no such key")
    return True


# --- answers


def test_a_type_that_a_rule_says_no_to_is_barred_with_the_rules_name_and_message() -> None:
    found = eligibility(bundle(rule("floor", at_least(80)))).ruling(labelled("a"), "gpu")
    bar = Bar("floor", "floor says so")
    expected = tuple((each, bar) for each in EVERY if each[0] != "p5.48xlarge")
    assert found == Ruling(bars=expected)


def test_a_type_that_every_rule_lets_through_is_not_named_at_all() -> None:
    assert eligibility(bundle(rule("floor", at_least(1)))).ruling(labelled("a"), "gpu") == LETS_ALL


def test_a_rule_that_errs_on_one_type_bars_that_one_and_no_other() -> None:
    found = eligibility(bundle(rule("odd", raises_for_p5))).ruling(labelled("a"), "gpu")
    bar = Bar("odd", "odd says so", error="ValueError: no such key", is_forbidden=False)
    assert found.barred == {("p5.48xlarge", "on-demand"): bar, ("p5.48xlarge", "spot"): bar}


def test_an_error_is_no_no_unless_another_rule_says_no() -> None:
    found = eligibility(bundle(rule("a-odd", raises), rule("b-floor", at_least(80)))).ruling(labelled("a"), "gpu")
    told = {name: (bar.rule, bar.is_forbidden) for (name, _), bar in found.bars}
    assert told == {
        "g5.12xlarge": ("a-odd", True),
        "g5.xlarge": ("a-odd", True),
        "p5.48xlarge": ("a-odd", False),
    }


@pytest.mark.parametrize("answer", [1, "true", 1.0, None, {"a": 1}])
def test_whatever_is_not_exactly_true_bars_as_an_error(answer: object) -> None:
    found = eligibility(bundle(rule("odd", lambda facts: answer))).ruling(labelled("a"), "gpu")
    assert len(found.bars) == len(EVERY)
    assert all(bar.error and not bar.is_forbidden for _, bar in found.bars)


@pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.AUDIT])
def test_a_rule_that_only_warns_bars_nothing_and_is_counted(enforcement: Enforcement) -> None:
    asked = eligibility(bundle(rule("floor", at_least(80), enforcement=enforcement)))
    pods = [labelled("a"), labelled("b")]
    assert {each.by_pool for each in asked.rulings(pods).values()} == {()}
    (effect,) = asked.effects(pods)
    assert (effect.rule.name, effect.pods, effect.types, effect.errors) == ("floor", 2, 2, 0)


def test_an_error_is_told_with_a_sample_and_the_pods_that_it_touches() -> None:
    selection = Selection(namespaces=("prod",))
    asked = eligibility(bundle(rule("odd", raises_for_p5, match=selection), rule("fine", at_least(1))))
    pods = [labelled("a", namespace="prod"), labelled("b")]
    asked.rulings(pods)
    (effect,) = asked.effects(pods)
    told = (effect.rule.name, effect.pods, effect.types, effect.errors, effect.sample)
    assert told == ("odd", 1, 1, 1, "ValueError: no such key")


def test_of_rules_that_act_and_do_not_err_there_is_nothing_to_tell() -> None:
    asked = eligibility(bundle(rule("floor", at_least(80))))
    asked.rulings([labelled("a")])
    assert asked.effects([labelled("a")]) == ()


def test_preferences_are_weighted_and_summed() -> None:
    is_g5 = rule("g5", lambda facts: 0.5 if facts["instanceType"]["family"] == "g5" else 0.0, prefers=True, weight=4)
    is_spot = rule("spot", lambda facts: 1.0 if facts["instanceType"]["capacityType"] == "spot" else 0.0, prefers=True)
    found = eligibility(bundle(is_g5, is_spot)).ruling(labelled("a"), "gpu")
    assert dict(found.scores) == {
        ("g5.12xlarge", "on-demand"): 2.0,
        ("g5.12xlarge", "spot"): 3.0,
        ("g5.xlarge", "on-demand"): 2.0,
        ("g5.xlarge", "spot"): 3.0,
        ("p5.48xlarge", "spot"): 1.0,
    }
    assert found.bars == ()


@pytest.mark.parametrize("score", [1.5, -0.1, 1, True, float("nan")])
def test_a_preference_outside_of_0_to_1_counts_as_an_error_and_scores_nothing(score: object) -> None:
    asked = eligibility(bundle(rule("likes", lambda facts: score, prefers=True)))
    assert asked.ruling(labelled("a"), "gpu") == LETS_ALL
    (effect,) = asked.effects([labelled("a")])
    assert (effect.errors, effect.sample) == (3, f"it came to {score!r}, which is not between 0.0 and 1.0")


def test_a_preference_that_errs_scores_nothing_and_bars_nothing() -> None:
    assert eligibility(bundle(rule("likes", raises, prefers=True))).ruling(labelled("a"), "gpu") == LETS_ALL


def test_a_rule_says_nothing_of_types_for_which_a_condition_is_false() -> None:
    when = PythonProgram(lambda facts: facts["instanceType"]["capacityType"] == "spot", frozenset({"instanceType.*"}))
    found = eligibility(bundle(rule("none", lambda facts: False, when=when))).ruling(labelled("a"), "gpu")
    assert {capacity for (_, capacity), _ in found.bars} == {"spot"}


def test_a_condition_that_errs_counts_as_met() -> None:
    when = PythonProgram(raises, frozenset({"pod.labels.tier"}))
    found = eligibility(bundle(rule("none", lambda facts: False, when=when))).ruling(labelled("a"), "gpu")
    assert len(found.bars) == len(EVERY)


def test_a_condition_that_errs_is_told_with_what_the_rule_bars_for_it() -> None:
    when = PythonProgram(raises, frozenset({"pod.labels.tier"}))
    asked = eligibility(bundle(rule("none", lambda facts: False, when=when)))
    told = {bar.error for _, bar in asked.ruling(labelled("a"), "gpu").bars}
    assert [text.startswith("condition when errs and so counts as met: ") for text in told] == [True]
    (effect,) = asked.effects([labelled("a")])
    assert 0 < effect.errors == effect.types
    assert effect.sample in {bar.error for _, bar in asked.ruling(labelled("a"), "gpu").bars}
    lets = eligibility(bundle(rule("all", lambda facts: True, when=when)))
    assert lets.ruling(labelled("a"), "gpu") == LETS_ALL
    assert lets.effects([labelled("a")]) == ()


def test_a_rule_is_asked_only_about_pods_and_pools_that_its_match_selects() -> None:
    gold = Requirement("tier", Operator.IN, ("gold",))
    core = Requirement("role", Operator.IN, ("core",))
    none = rule("none", lambda facts: False, match=Selection(pod_labels=(gold,), node_pool_labels=(core,)))
    asked = eligibility(bundle(none), market("core", role="core"), market("burst", role="burst"))
    told = {
        (each.key.name, pool): bool(asked.ruling(each, pool).bars)
        for each in (labelled("gold", tier="gold"), labelled("free", tier="free"), labelled("bare"))
        for pool in ("core", "burst")
    }
    assert [pair for pair, barred in told.items() if barred] == [("gold", "core")]


def test_the_price_that_a_rule_reads_is_the_cheapest_zones_of_that_capacity_type() -> None:
    zones = {"us-east-1a": "1", "us-east-1b": "2"}
    base = catalog((G5_XLARGE,), zones=zones)
    dearer = tuple(
        evolve(each, usd_per_hour=evolve(each.usd_per_hour, micros=each.usd_per_hour.micros * 3))
        if each.zone == "us-east-1a" and each.usd_per_hour
        else each
        for each in base.offerings
    )
    seen = rule("price", lambda facts: facts["instanceType"]["price"] < 0.5, reads=("instanceType.price",))
    asked = eligibility(bundle(seen), sold=evolve(base, offerings=dearer))
    assert asked.ruling(labelled("a"), "gpu").barred.keys() == {("g5.xlarge", "on-demand")}


def test_a_pools_facts_are_its_own() -> None:
    full = rule("full", lambda facts: facts["nodePool"]["nodes"] < 5, reads=("nodePool.nodes", "instanceType.name"))
    asked = eligibility(bundle(full), market("a", nodes=5), market("b", nodes=4))
    assert len(asked.ruling(labelled("x"), "a").bars) == len(EVERY)
    assert asked.ruling(labelled("x"), "b") == LETS_ALL


def test_a_ruling_names_only_types_of_its_pool() -> None:
    p5 = [each for each in EVERY if each[0] == "p5.48xlarge"]
    g5 = [each for each in EVERY if each[0] != "p5.48xlarge"]
    asked = eligibility(bundle(rule("none", lambda facts: False)), market("a", p5), market("b", g5))
    assert names(asked.ruling(labelled("x"), "a")) == {"p5.48xlarge"}
    assert names(asked.ruling(labelled("x"), "b")) == {"g5.12xlarge", "g5.xlarge"}


def test_a_type_without_any_price_is_not_asked_about() -> None:
    asked = eligibility(bundle(rule("none", lambda facts: False)), sold=catalog(TYPES, prices={"g5.xlarge": "1.0"}))
    assert names(asked.ruling(labelled("x"), "gpu")) == {"g5.xlarge"}


def test_the_message_is_made_of_the_pod_that_is_refused() -> None:
    told = PythonProgram(
        lambda facts: f"{facts['pod']['name']} may not have {facts['instanceType']['name']}",
        frozenset({"pod.name", "instanceType.name"}),
    )
    floor = rule("floor", at_least(80), told=told)
    asked = eligibility(bundle(floor))
    assert asked.rulings([labelled("a")])[labelled("a").key] is asked.rulings([labelled("b")])[labelled("b").key]
    assert asked.message("floor", labelled("b"), "gpu", ("g5.xlarge", "spot")) == "b may not have g5.xlarge"


def test_a_message_is_made_once_for_all_pods_that_it_cannot_tell_apart() -> None:
    told = PythonProgram(lambda facts: f"not for {facts['pod']['namespace']}", frozenset({"pod.namespace"}))
    asked = eligibility(bundle(rule("none", lambda facts: False, told=told)))
    pods = [labelled(f"pod-{number}", namespace=("a", "b")[number % 2]) for number in range(10)]
    messages = [asked.message("none", each, "gpu", ("g5.xlarge", "spot")) for each in pods]
    assert messages == ["not for a", "not for b"] * 5
    assert len(told.asked) == 2


def test_verdicts_tell_of_each_rule_about_the_pod_whether_it_applies_and_what_it_came_to() -> None:
    when = PythonProgram(lambda facts: False, frozenset({"pod.name"}))
    asked = eligibility(
        bundle(
            rule("a-floor", at_least(80)),
            rule("b-off", lambda facts: False, when=when),
            rule("c-odd", raises),
            rule("d-other", lambda facts: False, match=Selection(namespaces=("prod",))),
        )
    )
    found = asked.verdicts(labelled("x"), "gpu", "g5.xlarge", "spot")
    told = [(each.rule.name, each.applies, each.answer.value, each.answer.error) for each in found]
    assert told == [
        ("a-floor", True, False, ""),
        ("b-off", False, False, ""),
        ("c-odd", True, None, "ValueError: no such key"),
    ]


# --- classes


def by_tier() -> CompiledRule:
    return rule(
        "tier",
        lambda facts: facts["pod"]["labels"]["tier"] != "gold" or facts["instanceType"]["family"] == "p5",
        reads=("pod.labels.tier", "instanceType.family"),
    )


def test_pods_that_differ_only_where_nobody_reads_share_one_ruling_and_are_asked_about_once() -> None:
    tier = by_tier()
    pods = [labelled(f"pod-{number}", tier="gold", index=str(number)) for number in range(50)]
    rulings = eligibility(bundle(tier)).rulings(pods)
    assert len({id(each) for each in rulings.values()}) == 1
    assert len(main_of(tier).asked) == len(EVERY)


def test_a_label_that_a_rule_reads_tells_pods_apart() -> None:
    tier = by_tier()
    rulings = eligibility(bundle(tier)).rulings([labelled("a", tier="gold"), labelled("b", tier="free")])
    gold, free = rulings.values()
    assert names(gold.ruling("gpu")) == {"g5.12xlarge", "g5.xlarge"}
    assert free.by_pool == ()


def test_a_missing_label_is_no_value_of_it() -> None:
    rulings = eligibility(bundle(by_tier())).rulings([labelled("a", tier=""), labelled("b")])
    empty, missing = rulings.values()
    assert empty.by_pool == ()
    assert all(bar.error for _, bar in missing.ruling("gpu").bars)


def test_equal_rulings_of_different_pods_are_one_object() -> None:
    rulings = eligibility(bundle(by_tier())).rulings(
        [labelled("a", tier="x"), labelled("b", tier="y"), labelled("c", tier="gold")]
    )
    assert len({id(each) for each in rulings.values()}) == 2


def test_a_rule_that_reads_a_whole_map_tells_all_its_keys_apart() -> None:
    every = rule("all", lambda facts: len(facts["pod"]["labels"]) < 2, reads=("pod.labels.*", "instanceType.name"))
    rulings = eligibility(bundle(every)).rulings([labelled("a", x="1"), labelled("b", x="1", y="2")])
    assert [bool(each.by_pool) for each in rulings.values()] == [False, True]


def test_keys_with_dots_are_told_apart() -> None:
    read = rule(
        "name",
        lambda facts: facts["pod"]["labels"].get("app.kubernetes.io/name") == "llm",
        reads=("pod.labels.app.kubernetes.io/name",),
    )
    pods = [evolve(labelled(name), labels={"app.kubernetes.io/name": name}) for name in ("llm", "web")]
    assert [bool(each.by_pool) for each in eligibility(bundle(read)).rulings(pods).values()] == [False, True]


def test_a_rule_that_reads_no_type_is_asked_once_for_all_types() -> None:
    one = rule("one", lambda facts: facts["pod"]["gpus"] > 1, reads=("pod.gpus",))
    found = eligibility(bundle(one)).ruling(labelled("a"), "gpu")
    assert len(found.bars) == len(EVERY)
    assert len(main_of(one).asked) == 1


def test_a_rule_that_reads_nothing_of_the_pool_is_asked_once_for_all_pools() -> None:
    floor = rule("floor", at_least(80))
    eligibility(bundle(floor), market("a"), market("b")).rulings([labelled("x")])
    assert len(main_of(floor).asked) == len(EVERY)


# --- from pass to pass


def test_what_was_answered_in_one_pass_is_not_asked_again_in_the_next() -> None:
    tier = by_tier()
    rules = bundle(tier)
    first = eligibility(rules).rulings([labelled("a", tier="gold")])
    asked = len(main_of(tier).asked)
    again = eligibility(rules, at=5).rulings([labelled("b", tier="gold")])
    assert [each.by_pool for each in again.values()] == [each.by_pool for each in first.values()]
    assert len(main_of(tier).asked) == asked


def test_another_price_is_asked_about_although_the_digest_is_the_same() -> None:
    cheap = rule("cheap", lambda facts: facts["instanceType"]["price"] < 2, reads=("instanceType.price",))
    rules = bundle(cheap)
    dearer = catalog(TYPES, prices={"g5.xlarge": "9", "g5.12xlarge": "1", "p5.48xlarge": "1"})
    assert names(eligibility(rules).ruling(labelled("a"), "gpu")) == {"g5.12xlarge", "p5.48xlarge"}
    assert names(eligibility(rules, sold=dearer).ruling(labelled("a"), "gpu")) == {"g5.xlarge"}


def test_what_a_rule_reads_of_the_pool_or_the_cluster_is_asked_anew_when_it_changes() -> None:
    few = rule("few", lambda facts: facts["nodePool"]["nodes"] < 5, reads=("nodePool.nodes",))
    none = rule("none", lambda facts: facts["cluster"]["pendingPods"] < 2, reads=("cluster.pendingPods",))
    rules = bundle(few, none)
    waiting = [labelled("a"), labelled("b")]
    told = [
        bool(eligibility(rules, market(nodes=nodes), pods=pods, at=at).ruling(waiting[0], "gpu").bars)
        for at, (nodes, pods) in enumerate([(1, ()), (5, ()), (1, waiting), (1, ())])
    ]
    assert told == [False, True, True, False]


def test_a_rule_that_reads_the_time_is_asked_in_each_pass() -> None:
    late = rule("late", lambda facts: facts["now"] < NOON + timedelta(minutes=3), reads=("now",))
    rules = bundle(late)
    told = [bool(eligibility(rules, at=at).ruling(labelled("a"), "gpu").bars) for at in (0, 5, 1)]
    assert told == [False, True, False]


def test_the_books_are_bounded() -> None:
    rules = bundle(rule("floor", at_least(80)))
    for number in range(40):
        name = f"env-{number}"
        Eligibility(rules, Policy((), ()), CATALOG, environment(name), snapshot(), (market(),))
    assert len(memo._BOOKS) == 8


# --- promises


def test_the_order_of_pods_and_pools_changes_nothing() -> None:
    rules = bundle(by_tier(), rule("floor", at_least(80)))
    pods = [labelled(f"pod-{number}", tier=("gold", "free")[number % 2]) for number in range(6)]
    markets = [market("a"), market("b", EVERY[:3])]
    forth = eligibility(rules, *markets).rulings(pods)
    memo.forget()
    back = eligibility(rules, *reversed(markets)).rulings(list(reversed(pods)))
    assert {key: each.by_pool for key, each in forth.items()} == {key: each.by_pool for key, each in back.items()}


def test_replacing_rules_by_erring_ones_never_adds_an_eligible_type_nor_a_preference() -> None:
    working = {
        "floor": lambda name: rule(name, at_least(80)),
        "likes": lambda name: rule(name, lambda facts: 1.0, prefers=True),
        "tier": lambda name: evolve(by_tier(), rule=evolve(by_tier().rule, name=name)),
    }
    pods = [labelled("a", tier="gold"), labelled("b", tier="free")]
    before = eligibility(bundle(*(make(name) for name, make in working.items()))).rulings(pods)
    for count in range(1, len(working) + 1):
        for broken in combinations(working, count):
            rules = [
                rule(name, raises, prefers=name == "likes") if name in broken else make(name)
                for name, make in working.items()
            ]
            after = eligibility(bundle(*rules)).rulings(pods)
            for key, found in after.items():
                assert before[key].ruling("gpu").barred.keys() <= found.ruling("gpu").barred.keys()
                assert found.ruling("gpu").score_of.items() <= before[key].ruling("gpu").score_of.items()
