"""Policy tests as texts, run against rules that are given as texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from attrs import frozen

from engine.model.diagnostic import Diagnostic
from engine.model.environment import Environment
from engine.model.policy import Policy
from engine.policy.findings import Findings
from engine.policy.testing.coverage import RuleCoverage
from engine.policy.testing.judge import CaseResult, Judge
from engine.policy.testing.read import read_policy_tests
from tests.builders import G5_12XLARGE, G5_XLARGE, P5_48XLARGE, catalog, environment
from tests.policy.rules.rule_texts import load_rules

ENGINES = ("cel-expr", "cel-python")
CATALOG = catalog((G5_XLARGE, G5_12XLARGE, P5_48XLARGE))
FILE = "rules.test.yaml"
HEAD = """\
apiVersion: nodewright.dev/v1alpha1
kind: PolicyTest
metadata: {name: tests}
"""


@frozen
class Judged:
    results: tuple[CaseResult, ...]
    findings: tuple[Diagnostic, ...]
    coverage: Mapping[str, RuleCoverage]

    @property
    def problem(self) -> str:
        """Of the only case."""
        (result,) = self.results
        return result.problem

    @property
    def told(self) -> list[str]:
        """``LINE:COLUMN RULE: MESSAGE`` of each finding."""
        return [f"{each.position.line}:{each.position.column} {each.rule}: {each.message}" for each in self.findings]


def judged(tests: str | bytes, *rules: str, engine: str = "cel-expr", stack: Environment | None = None) -> Judged:
    """What a test file comes to. All texts of rules are files beside a pool named gpu and the Calendar ``office``."""
    here = stack or environment(cel_engine=engine)
    policy = load_rules(*rules, environment=stack) if stack is not None else _policy(rules, engine)
    findings = Findings()
    content = tests if isinstance(tests, bytes) else tests.encode()
    judge = Judge(policy, CATALOG, here, findings)
    read = read_policy_tests([(FILE, content)], findings)
    results = tuple(judge.result(case, test.file, test.name) for test in read for case in test.cases)
    return Judged(results, findings.in_file_order, {each.rule: each for each in judge.coverage()})


@cache
def _policy(rules: tuple[str, ...], engine: str) -> Policy:
    return load_rules(*rules, environment=environment(cel_engine=engine))


def case(rule: str, expect: str, given: str = "{}", more: str = "") -> str:
    """A file of one case. ``given`` is a flow map; it stands in line 9 from column 14 on."""
    return f"""{HEAD}spec:
  cases:
    - name: the case
      rule: {rule}
      expect: {expect}
      given: {given}
{f"      {more}" if more else ""}
"""
