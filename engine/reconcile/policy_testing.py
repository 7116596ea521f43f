"""Running the tests that lie beside policies: cases about rules, and scenarios on recorded snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from attrs import evolve, frozen

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.diagnostic import InvalidInput, Position, Severity
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.money import UsdPerHour, total
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.policy.cel.engines import ENGINES
from engine.policy.findings import Findings, did_you_mean
from engine.policy.testing.cases import PlanExpectation, PolicyTest, Scenario
from engine.policy.testing.coverage import RuleCoverage
from engine.policy.testing.judge import CaseResult, Judge
from engine.policy.testing.read import read_policy_tests
from engine.policy.testing.tests_run import PolicyTestsRun, Untested
from engine.reconcile.assembly import catalog_of
from engine.reconcile.planning import read_snapshot
from engine.reconcile.workspace import Workspace
from engine.report.stay_words import stay_words
from engine.report.words import refusal_words

_MOST_TOLD = 10
_TEST_ENDING = (".test", "_test")


@frozen
class Wanted:
    """Which tests to run, and how. ``run`` is a part of the name of a case, a rule or a test; empty runs all.

    ``environment`` and ``engine`` empty are the first environment by name, and its own engine.
    """

    paths: tuple[Path, ...] = ()
    environment: str = ""
    run: str = ""
    engine: str = ""
    threshold: float | None = None
    needs_tests: bool = False


@frozen
class _Ground:
    """An environment, and what decisions in it go by."""

    environment: Environment
    policy: Policy
    catalog: Catalog


def run_policy_tests(workspace: Workspace, wanted: Wanted) -> PolicyTestsRun:
    """Runs them all; of policy that does not load there are findings only. Raises Fault for what is not there."""
    if wanted.engine and wanted.engine not in ENGINES:
        raise Fault(f"there is no CEL engine {wanted.engine[:40]!r}", did_you_mean(wanted.engine, ENGINES))
    names = workspace.environment_names()
    if not (wanted.environment or names):
        raise Fault(f"{workspace.stacks} holds no Pulumi.ENV.yaml", "rules are tested with the values of a stack")
    chosen = evolve(wanted, environment=wanted.environment or names[0])
    try:
        return _Running(workspace, chosen).outcome()
    except InvalidInput as invalid:
        return PolicyTestsRun(environment=chosen.environment, engine=chosen.engine, findings=invalid.diagnostics)


class _Running:
    def __init__(self, workspace: Workspace, wanted: Wanted) -> None:
        self._workspace, self._wanted = workspace, wanted
        self._grounds: dict[str, _Ground] = {}
        self._here = self._ground(wanted.environment)
        self._findings = Findings()

    def outcome(self) -> PolicyTestsRun:
        root, here = self._workspace.root, self._here
        places = self._wanted.paths or tuple(root / each for each in here.environment.policies)
        files = self._workspace.policy_tests(places)
        if self._wanted.paths and not files:
            raise Fault("no policy test is there", "a test is a file NAME.test.yaml, of kind PolicyTest")
        folders = {shown: file.parent for file, shown, _ in files}
        tests = read_policy_tests([(shown, content) for _, shown, content in files], self._findings)
        judge = Judge(here.policy, here.catalog, here.environment, self._findings)
        results = tuple(result for test in tests for result in self._results(test, judge, folders[test.file]))
        if self._wanted.run and not results and not self._findings.has_errors:
            raise Fault(f"no case has {self._wanted.run[:60]!r} in its name", "nothing was tested")
        coverage = self._in_scope(judge.coverage(), results)
        return PolicyTestsRun(
            environment=here.environment.name,
            engine=here.policy.cel_engine,
            files=len(files),
            results=results,
            coverage=coverage,
            untested=() if self._wanted.run else _untested(coverage),
            findings=self._findings.in_file_order,
            threshold=self._wanted.threshold,
            needs_tests=self._wanted.needs_tests,
        )

    def _results(self, test: PolicyTest, judge: Judge, folder: Path) -> Iterator[CaseResult]:
        for case in test.cases:
            if self._is_wanted(test.name, case.name, case.rule):
                yield judge.result(case, test.file, test.name)
        for scenario in test.scenarios:
            if self._is_wanted(test.name, scenario.name, ""):
                blank = CaseResult(test.file, test.name, scenario.name, "", scenario.position)
                yield self._scenario(scenario, folder, blank)

    def _is_wanted(self, *names: str) -> bool:
        return any(self._wanted.run in name for name in names)

    def _in_scope(self, coverage: Sequence[RuleCoverage], results: Sequence[CaseResult]) -> tuple[RuleCoverage, ...]:
        """All rules, or those that the paths and cases that were chosen are about."""
        if not (self._wanted.paths or self._wanted.run):
            return tuple(coverage)
        asked = {result.rule for result in results}
        beside = [] if self._wanted.run else list(self._wanted.paths)
        return tuple(each for each in coverage if each.rule in asked or self._is_beside(each.position.file, beside))

    def _is_beside(self, rules_file: str, chosen: Sequence[Path]) -> bool:
        """Whether a rules file is in a folder that was chosen, or is the one whose tests were."""
        file = (self._workspace.root / rules_file).resolve()
        for path in chosen:
            place = path.resolve()
            tested = next((place.stem.removesuffix(end) for end in _TEST_ENDING if place.stem.endswith(end)), None)
            if file.is_relative_to(place) or (file.parent == place.parent and file.stem == tested):
                return True
        return False

    def _scenario(self, scenario: Scenario, folder: Path, blank: CaseResult) -> CaseResult:
        """What a scenario's plan comes to; where it is other than expected, with what the plan tells."""
        try:
            ground = self._ground(scenario.environment) if scenario.environment else self._here
        except (Fault, InvalidInput) as error:
            message = f"the environment {scenario.environment[:60]} cannot be loaded: {_first_error(error)}"
            return self._invalid(blank, scenario.position_of("environment"), "bad-environment", message)
        try:
            snapshot = read_snapshot(folder / scenario.snapshot)
        except (Fault, ValueError) as error:
            return self._invalid(blank, scenario.position_of("snapshot"), "bad-snapshot", str(error))
        if scenario.at is not None:
            snapshot = evolve(snapshot, taken_at=scenario.at)
        try:
            plan = decide(snapshot, ground.policy, ground.catalog, ground.environment)
        except OverflowError:
            message = "nothing can be decided so near the end of the calendar"
            return self._invalid(blank, scenario.position_of("at"), "bad-time", message)
        problem = "; ".join(_differences(plan, scenario.expectation))
        if not problem:
            return blank
        told = dict.fromkeys(_told(plan, plan.decided_at))
        return evolve(blank, problem=problem, values=tuple(list(told)[:_MOST_TOLD]))

    def _invalid(self, blank: CaseResult, place: Position, rule: str, message: str) -> CaseResult:
        self._findings.error(place, rule, message)
        return evolve(blank, problem="the scenario is not valid", is_invalid=True)

    def _ground(self, name: str) -> _Ground:
        if name not in self._grounds:
            environment = self._workspace.environment(name)
            if self._wanted.engine:
                environment = evolve(environment, cel_engine=self._wanted.engine)
            policy = self._workspace.policy(environment)
            self._grounds[name] = _Ground(environment, policy, catalog_of(self._workspace, environment))
        return self._grounds[name]


def _first_error(error: Fault | InvalidInput) -> str:
    if isinstance(error, Fault):
        return str(error)
    return str(next(each for each in error.diagnostics if each.severity is Severity.ERROR))


def _untested(coverage: Sequence[RuleCoverage]) -> tuple[Untested, ...]:
    by_file: dict[str, list[str]] = {}
    for each in coverage:
        if not each.cases:
            by_file.setdefault(each.position.file, []).append(each.rule)
    return tuple(Untested(file, tuple(rules)) for file, rules in sorted(by_file.items()))


def _differences(plan: Plan, wanted: PlanExpectation) -> Iterator[str]:
    counts = (
        ("launches", wanted.launches, len(plan.launches)),
        ("removals", wanted.removals, len(plan.removals)),
        ("unplaced", wanted.unplaced, len(plan.unplaced)),
    )
    for name, expected, found in counts:
        if expected is not None and expected != found:
            yield f"expected {expected} {name}, the plan has {found}"
    added = total(launch.claim.usd_per_hour for launch in plan.launches)
    dollars = wanted.added_usd_per_hour
    if dollars is not None and not dollars.equals(added.micros):
        yield f"expected ${dollars.text} added an hour, the plan adds {_exact(added)}"
    if wanted.messages:
        told = [f"{about}: {words}" for about, words in _told(plan, plan.decided_at)]
        for text in wanted.messages:
            if not any(text in each for each in told):
                yield f"nothing that the plan tells has {text!r} in it"


def _exact(price: UsdPerHour) -> str:
    return f"${price.micros // 1_000_000}.{price.micros % 1_000_000:06d}"


def _told(plan: Plan, now: datetime) -> Iterator[tuple[str, str]]:
    """All that the plan has to say of rules, and of what it does not do: who is concerned, and the words."""
    for verdict in plan.verdicts:
        yield verdict.rule, " ".join(each for each in (verdict.outcome.value, verdict.message, verdict.error) if each)
    for unplaced in plan.unplaced:
        for each in unplaced.refusals:
            yield f"{unplaced.pod} {each.node_pool}".strip(), refusal_words(each.refusal, now)
    for shortfall in plan.base_shortfalls:
        yield shortfall.node_pool, refusal_words(shortfall.refusal, now)
    for kept in plan.kept:
        yield kept.node or kept.claim, stay_words(kept.reason, now)
