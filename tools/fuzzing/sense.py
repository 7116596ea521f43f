"""What must hold of every policy that loads: nothing that a file says is lost, and all of it can be relied on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import Any, cast

import yaml
from attrs import evolve, fields, has

from engine.model.canonical import canonical_json
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.policy import NodePool, Policy
from engine.model.rule import AnyRule, DisruptionBudget, Guardrail, LimitRule, RequirementRule, RuleKind, Window
from engine.policy.cron import fires
from engine.policy.lint import lint
from engine.policy.windows import is_open, openings
from tools.fuzzing.answers import check_rules_on_facts
from tools.fuzzing.documents import Loader
from tools.fuzzing.oracles import Files, Nonsense, check_findings, encodable, loaded, promise, text_of

# Cron lines run on clocks without a zone.
_A_CLOCK = datetime.fromisoformat("2026-11-30T00:00:00")


def check_policy_files(files: Files, environment: Environment | None, catalog: Catalog, rng: Random) -> bool:
    """Whether the files load; in either case all must hold that is promised of them."""
    policy, findings = loaded(files, environment)
    of_stack = [] if environment is None else [(f"stacks/Pulumi.{environment.name}.yaml", b"")]
    check_findings([each for each in findings if each.position.file not in {name for name, _ in of_stack}], files)
    if policy is None and rng.random() < 0.7:
        return False
    again, findings_again = loaded(files, environment)
    promise(findings == findings_again, "the same files have the same findings")
    turned, _ = loaded(list(reversed(files)), environment)
    promise((turned is None) == (policy is None), "the order of files changes nothing about whether they load")
    if policy is None or again is None or turned is None:
        return False
    promise(policy.digest == again.digest, "the same files have the same digest")
    promise(policy.digest == turned.digest, "the order of files does not change the digest")
    promise(sorted(map(str, policy.warnings)) == sorted(map(str, turned.warnings)), "nor does it change the warnings")
    check_findings(lint(policy, catalog), files)
    check_policy(policy)
    check_nothing_lost(policy, files)
    check_rules_on_facts(policy, rng)
    return True


def check_policy(policy: Policy) -> None:
    """What any policy that loaded can be relied on to be."""
    json.loads(canonical_json(evolve(policy, warnings=())).decode(), parse_constant=_no_number)
    for value in _parts(policy):
        promise(not isinstance(value, float) or math.isfinite(value), "numbers are finite", value)
        promise(not isinstance(value, timedelta) or value >= timedelta(0), "durations are not negative", value)
        if isinstance(value, str):
            encodable(value)
    for pool in policy.node_pools:
        _check_pool(pool)
    for window in policy.windows:
        _check_window(window)
    names = [rule.name for rule in policy.rules]
    promise(len(set(names)) == len(names), "rule names are unique", names)
    for rule in policy.rules:
        _check_rule(rule, policy)


def _no_number(constant: str) -> None:
    raise Nonsense("a policy is JSON", constant)


def _parts(value: object) -> Iterator[object]:
    yield value
    if has(type(value)):
        for each in fields(cast("Any", type(value))):
            yield from _parts(getattr(value, each.name))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _parts(inner)
    elif isinstance(value, tuple | list | frozenset):
        for inner in value:
            yield from _parts(inner)


def _check_pool(pool: NodePool) -> None:
    promise(bool(pool.name), "a pool has a name")
    promise(all(amount >= 0 for amount in dict(pool.limits).values()), "limits are not negative", pool.limits)
    promise(pool.base_nodes >= 0 and 0 <= pool.weight <= 100, "counts are within their bounds", pool)
    for budget in pool.disruption.budgets:
        promise((budget.nodes is None) != (budget.percent is None), "a budget is nodes or percent", budget)
        promise((budget.nodes or 0) >= 0 and 0 <= (budget.percent or 0) <= 100, "a budget is a number", budget)
        promise((budget.schedule is None) == (budget.duration is None), "a schedule has a duration", budget)
        if budget.schedule is not None:
            list(islice(fires(budget.schedule, _A_CLOCK), 3))


def _check_window(window: Window) -> None:
    promise(bool(window.schedules) and window.duration > timedelta(0), "a window opens", window)
    for line in window.schedules:
        promise(next(fires(line, _A_CLOCK), None) is not None, "a schedule fires", line)
    monday = datetime.fromisoformat("2026-03-23T00:00:00+00:00")
    for opening in openings(window, monday, monday + timedelta(days=2)):
        promise(opening.begins < opening.ends, "an opening ends after it begins", opening)
        promise(is_open(window, opening.begins), "a window is open when it opens", (window, opening))


def _check_rule(rule: AnyRule, policy: Policy) -> None:
    promise(bool(rule.message.strip()), "a rule has a message", rule.name)
    promise(set(rule.match.node_pools) <= {pool.name for pool in policy.node_pools}, "a rule's pools are there")
    match rule:
        case RequirementRule():
            promise((rule.require is None) != (rule.prefer is None), "a rule requires or prefers", rule)
            promise(rule.weight > 0, "a weight is above 0", rule.weight)
        case DisruptionBudget():
            promise(set(rule.windows) <= {window.name for window in policy.windows}, "a rule's windows are there")
        case Guardrail():
            promise(bool(rule.blocks) and len(set(rule.blocks)) == len(rule.blocks), "a guardrail blocks", rule)
        case LimitRule():
            promise(bool(rule.ceiling.text.strip()), "a limit has a ceiling", rule)


def check_nothing_lost(policy: Policy, files: Files) -> None:
    """Every rule, pool and class that stands in the files is in the policy, and parameters are as declared."""
    documents: list[Any] = []
    try:
        for _, content in files:
            documents += yaml.load_all(text_of(content), Loader)
    except (ValueError, yaml.YAMLError):
        return  # dates that are none, and ints of other bases, are text to us
    objects = [each for document in documents for each in _objects(document)]
    for kinds, found in (
        ([kind.value for kind in RuleKind], policy.rules),
        (["NodePool"], policy.node_pools),
        (["EC2NodeClass"], policy.node_classes),
    ):
        written = [each for each in objects if each.get("kind") in kinds]
        promise(len(written) == len(found), "nothing that a file says is dropped", (kinds, len(written), len(found)))
    by_name = {rule.name: rule for rule in policy.rules}
    for each in objects:
        about = each.get("metadata")
        rule = by_name.get(str(about.get("name"))) if isinstance(about, dict) else None
        if rule is not None and each.get("kind") == rule.kind.value:
            _check_params(rule, each["spec"].get("params") or {})


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        return
    kind, items = str(document.get("kind")), document.get("items")
    if kind.endswith("List") and isinstance(items, list):
        alike = {} if kind == "List" else {"kind": kind.removesuffix("List")}
        yield from ({**alike, **each, **({} if each.get("kind") != kind else alike)} for each in items)
    else:
        yield document


def _check_params(rule: AnyRule, declared: Mapping[str, Any]) -> None:
    promise(set(rule.params) == {str(name) for name in declared}, "a rule has the parameters that it declares")
    types = {"bool": bool, "int": int, "double": float, "string": str}
    for name, given in declared.items():
        value = rule.params[str(name)]
        promise(type(value) is types[given["type"]], "a parameter has its type", (name, value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A bound that is null says nothing.
            least, most = given.get("min"), given.get("max")
            within = (least is None or least <= value) and (most is None or value <= most)
            promise(within, "a parameter is within its bounds", (name, value, given))
