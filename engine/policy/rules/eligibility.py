"""What requirement rules decide for pods that wait: which instance types each may get of a pool, and which it likes.

Pods that no rule can tell apart are asked about once, with all types at once, and what does not depend on the time is
remembered from pass to pass. Rules speak of what would be launched; a node that stands is a fact.

A ``require`` that is false or errs bars the type, whatever other rules say; scores of ``prefer`` are summed, and one
that errs counts as 0. Rules that only warn or count act on nothing: `Eligibility.effects` tells what they would do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from attrs import evolve, frozen

from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.pod import Pod, PodKey
from engine.model.policy import Policy
from engine.model.rule import RequirementRule
from engine.model.snapshot import Snapshot
from engine.policy.cel.port import Answer, Bound, Observed
from engine.policy.rules.asked import TYPES, AskedRule, Opinion
from engine.policy.rules.class_keys import PodSorter, pod_values, values_at
from engine.policy.rules.compiled import Bundle
from engine.policy.rules.memo import book_of
from engine.policy.rules.pass_facts import PassFacts, PoolMarket
from engine.policy.rules.ruling import LETS_ALL, NO_RULINGS, Bar, Ruling, Rulings, TypeAt


@frozen
class RuleEffect:
    """What one rule does to the pods that wait, or would do if it did not only warn or count.

    ``pods`` are those for which it says no to one of the ``types`` at least, or errs on it. It erred on ``errors`` of
    the types; ``sample`` is what one of these came to.
    """

    rule: RequirementRule
    pods: int
    types: int
    errors: int
    sample: str


@frozen
class RuleVerdict:
    """What one rule says of a pod and a type, for people. ``applies`` is false where a condition of it is.

    ``observed`` are the sub-expressions of its ``require`` or ``prefer``, outermost first.
    """

    rule: RequirementRule
    applies: bool
    answer: Answer
    observed: tuple[Observed, ...]
    message: str


@frozen(eq=False)
class _Class:
    """Pods that no rule can tell apart: how they are ruled, and what each rule had to say, by its name."""

    rulings: Rulings
    said: Mapping[str, Sequence[Opinion]]

    @property
    def erred(self) -> bool:
        return any(opinion.errors for opinions in self.said.values() for opinion in opinions)


@frozen(eq=False)
class _Shelf:
    """What a rule said so far of these types, by what it reads."""

    types: tuple[TypeAt, ...]
    bound: tuple[Bound, ...]
    opinions: dict[Hashable, Opinion]


class Eligibility:
    """One pass's requirement rules. Pure: what is remembered changes no answer."""

    def __init__(
        self,
        bundle: Bundle,
        policy: Policy,
        catalog: Catalog,
        environment: Environment,
        snapshot: Snapshot,
        markets: Iterable[PoolMarket],
    ) -> None:
        """``markets`` are the pools that make nodes for pods."""
        self._asked = [
            AskedRule(compiled.rule, compiled)
            for compiled in bundle.requirement_rules
            if isinstance(compiled.rule, RequirementRule)
        ]
        self._book = book_of(bundle, policy.digest, catalog, environment.name)
        self._markets = {each.pool.name: each for each in sorted(markets, key=lambda market: market.pool.name)}
        self._facts = PassFacts(bundle.engine, policy, environment, snapshot, self._markets.values())
        self._now = snapshot.taken_at
        self._sorter = PodSorter((path for asked in self._asked for path in asked.pod_paths), self._now)
        self._classes: dict[Hashable, _Class] = {}
        self._interned: dict[Rulings, Rulings] = {NO_RULINGS: NO_RULINGS}
        self._shelves: dict[tuple[str, str], _Shelf] = {}
        self._messages: dict[Hashable, str] = {}

    @property
    def class_count(self) -> int:
        """How many kinds of pods there were to ask about so far."""
        return len(self._classes)

    def rulings(self, pods: Iterable[Pod]) -> Mapping[PodKey, Rulings]:
        """Of each pod, in all pools; equal ones are one object."""
        return {pod.key: self._class_of(pod).rulings for pod in pods}

    def ruling(self, pod: Pod, pool: str) -> Ruling:
        """Of one pod in one pool."""
        return self._class_of(pod).rulings.ruling(pool)

    def effects(self, pods: Iterable[Pod]) -> tuple[RuleEffect, ...]:
        """What there is to tell of rules, in the order of their names: of those that only warn or count, what they
        would do; of the others, where they erred. ``pods`` are among those whose rulings were asked for."""
        if all(each.acts for each in self._asked) and not any(each.erred for each in self._classes.values()):
            return ()
        counts: dict[int, tuple[_Class, int]] = {}
        for pod in pods:
            formed = self._class_of(pod)
            counts[id(formed)] = (formed, counts.get(id(formed), (formed, 0))[1] + 1)
        found = (self._effect(asked, list(counts.values())) for asked in self._asked)
        return tuple(effect for effect in found if effect.types)

    def message(self, rule: str, pod: Pod, pool: str, type_at: TypeAt) -> str:
        """What a rule has to say of a type that it bars: its message expression, or its message where that errs."""
        asked = next(each for each in self._asked if each.rule.name == rule)
        if not asked.has_message_of_its_own:
            return asked.rule.message
        key = (rule, pool, type_at, pod_values(asked.told_pod_paths, pod, self._now))
        if key not in self._messages:
            self._messages[key] = asked.compiled.told(self._facts_with(asked, pod, pool, type_at))
        return self._messages[key]

    def verdicts(self, pod: Pod, pool: str, instance_type: str, capacity_type: str) -> tuple[RuleVerdict, ...]:
        """What each rule that is about the pod and the pool says of one type, in the order of their names.

        Raises KeyError for a pool or a type that is not there. Slow: for people.
        """
        market, type_at = self._markets[pool], (instance_type, capacity_type)
        told = []
        for asked in self._asked:
            if asked.compiled.matches_pod(pod) and asked.compiled.matches_pool(market.pool):
                facts = self._facts_with(asked, pod, pool, type_at)
                answer, observed = asked.main.observe(facts)
                told.append(
                    RuleVerdict(
                        rule=asked.rule,
                        applies=asked.compiled.applies(facts),
                        answer=answer,
                        observed=observed,
                        message=asked.compiled.told(facts),
                    )
                )
        return tuple(told)

    def _class_of(self, pod: Pod) -> _Class:
        key = self._sorter.key(pod)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = self._judge(pod)
        return found

    def _judge(self, pod: Pod) -> _Class:
        asked = [each for each in self._asked if each.compiled.matches_pod(pod)]
        keys = {each.rule.name: pod_values(each.pod_paths, pod, self._now) for each in asked}
        said: dict[str, list[Opinion]] = {}
        by_pool = []
        for name, market in self._markets.items():
            acting = []
            for each in asked:
                if each.compiled.matches_pool(market.pool):
                    opinion = self._opinion(each, keys[each.rule.name], pod, name)
                    said.setdefault(each.rule.name, []).append(opinion)
                    if each.acts:
                        acting.append((each.rule, opinion))
            ruling = _ruling(acting, market.types)
            if ruling != LETS_ALL:
                by_pool.append((name, ruling))
        rulings = Rulings(tuple(by_pool))
        return _Class(self._interned.setdefault(rulings, rulings), said)

    def _opinion(self, asked: AskedRule, of_pod: Hashable, pod: Pod, pool: str) -> Opinion:
        """A rule that reads nothing of the pool is asked once, about the types of all pools that it is about."""
        at = pool if "nodePool" in asked.variables else ""
        shelf = self._shelf(asked, at)
        key = (of_pod, *self._of_the_pass(asked, at))
        found = shelf.opinions.get(key)
        if found is None:
            facts = self._facts.bound(asked.variables - {TYPES}, asked.rule, pod, at)
            found = asked.opinion(facts, shelf.types, shelf.bound)
            shelf.opinions[key] = found
            if not asked.reads_time:
                self._book.count(len(shelf.types))
        return found

    def _of_the_pass(self, asked: AskedRule, pool: str) -> tuple[Hashable, Hashable]:
        """What an answer may depend on besides the pod, the time apart."""
        of_pool, of_cluster = asked.paths("nodePool"), asked.paths("cluster")
        return (
            values_at(of_pool, self._facts.node_pool(pool)) if of_pool else (),
            values_at(of_cluster, self._facts.cluster) if of_cluster else (),
        )

    def _shelf(self, asked: AskedRule, pool: str) -> _Shelf:
        name = (asked.rule.name, pool)
        if name not in self._shelves:
            about = [
                market
                for each, market in self._markets.items()
                if pool in ("", each) and asked.compiled.matches_pool(market.pool)
            ]
            types = tuple(sorted({each for market in about for each in market.types if each in self._book.sold}))
            kept = {} if asked.reads_time else self._book.shelf(asked.rule.name, types)
            self._shelves[name] = _Shelf(types, tuple(map(self._book.bound, types)), kept)
        return self._shelves[name]

    def _facts_with(self, asked: AskedRule, pod: Pod, pool: str, type_at: TypeAt) -> Mapping[str, Bound]:
        facts = self._facts.bound(asked.told_variables - {TYPES}, asked.rule, pod, pool)
        return {**facts, TYPES: self._book.bound(type_at)}

    @staticmethod
    def _effect(asked: AskedRule, counts: list[tuple[_Class, int]]) -> RuleEffect:
        pods = 0
        types: set[str] = set()
        errors: dict[TypeAt, str] = {}
        for formed, count in counts:
            said = formed.said.get(asked.rule.name, ())
            erred = {each: error for opinion in said for each, error in opinion.errors.items()}
            touched = erred.keys() | ({each for opinion in said for each in opinion.noes} if not asked.acts else set())
            pods += count if touched else 0
            types |= {name for name, _ in touched}
            errors |= erred
        sample = errors[min(errors)] if errors else ""
        return RuleEffect(asked.rule, pods, len(types), errors=len({name for name, _ in errors}), sample=sample)


def _ruling(opinions: Iterable[tuple[RequirementRule, Opinion]], types: Iterable[TypeAt]) -> Ruling:
    """What rules, in the order of their names, make together of a pool's types."""
    bars: dict[TypeAt, Bar] = {}
    scores: dict[TypeAt, float] = {}
    of_pool = frozenset(types)
    for rule, opinion in opinions:
        for type_at, error in opinion.noes.items():
            if type_at in of_pool:
                first = bars.setdefault(type_at, Bar(rule.name, rule.message, error, is_forbidden=not error))
                if not (error or first.is_forbidden):
                    bars[type_at] = evolve(first, is_forbidden=True)
        for type_at, score in opinion.likes.items():
            if type_at in of_pool and score:
                scores[type_at] = scores.get(type_at, 0.0) + score
    return Ruling(tuple(sorted(bars.items(), key=_by_type)), tuple(sorted(scores.items(), key=_by_type)))


def _by_type(pair: tuple[TypeAt, object]) -> TypeAt:
    return pair[0]
