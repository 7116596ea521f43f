"""Rule files that load as they are, beside the pool and node class of `tests.policy.texts`."""

from __future__ import annotations

from engine.model.diagnostic import Diagnostic
from engine.model.environment import Environment
from engine.model.policy import Policy
from engine.model.rule import AnyRule
from tests.policy.texts import CLASS, POOL, findings_of, policy_of

REQUIREMENT = """\
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata:
  name: gold-on-nvlink
  labels: {owner: platform}
spec:
  match:
    nodePools: [gpu]
    pods:
      namespaces: [serving]
      selector: {tier: gold}
  matchConditions:
    - name: asks-for-a-gpu
      expression: pod.gpus > 0
  params:
    minMemory: {type: int, default: 80, min: 16, max: 141}
  variables:
    - {name: alone, expression: pod.gpus == 1}
  require: |-
    instanceType.gpuMemoryGiB >= params.minMemory
      && (variables.alone || instanceType.nvlink)
  message: gold inference needs one large GPU, or several joined by NVLink
  messageExpression: '"needs GPUs of " + string(params.minMemory) + " GiB"'
  remedy: ask for fewer GPUs
  docs: https://example.com/gold
"""
LIMIT = """\
apiVersion: nodewright.dev/v1alpha1
kind: LimitRule
metadata: {name: team-cap}
spec:
  resource: gpus
  groupBy: '"team" in pod.labels ? pod.labels.team : "unowned"'
  params:
    day: {type: int, default: 8}
    night: {type: int, default: 32}
  ceiling: |-
    windows.business ? params.day : params.night
  message: a team has so many GPUs at most
"""
BUDGET = """\
apiVersion: nodewright.dev/v1alpha1
kind: DisruptionBudget
metadata: {name: slow-drain}
spec:
  reasons: [Underutilized, Drifted]
  windows: [business]
  candidate: node.age > duration("2h")
  budget: 2
  maxPerWindow: 4
  message: nodes leave slowly, and in the daytime
"""
GUARDRAIL = """\
apiVersion: nodewright.dev/v1alpha1
kind: Guardrail
metadata: {name: spend}
spec:
  blocks: [add]
  params:
    mostPerHour: {type: double, default: 500}
  expression: cost.hourlyAfter <= params.mostPerHour
  message: the plan costs too much
"""
CALENDAR = """\
apiVersion: nodewright.dev/v1alpha1
kind: Calendar
metadata: {name: office}
spec:
  windows:
    - name: business
      schedule: 0 9 * * 1-5
      duration: 8h
      timeZone: America/New_York
    - name: quiet
      schedules: ["@daily", 0 12 * * 6]
      duration: 1h30m
"""
RULES = {
    "RequirementRule": REQUIREMENT,
    "LimitRule": LIMIT,
    "DisruptionBudget": BUDGET,
    "Guardrail": GUARDRAIL,
}
# What stands before a rule: f0.yaml, f1.yaml, f2.yaml.
BESIDE = (POOL, CLASS, CALENDAR)
FILE = f"f{len(BESIDE)}.yaml"


def load_rules(*texts: str, environment: Environment | None = None) -> Policy:
    return policy_of(*BESIDE, *texts, environment=environment)


def rule_of(text: str, environment: Environment | None = None) -> AnyRule:
    """The only rule of a text."""
    (rule,) = load_rules(text, environment=environment).rules
    return rule


def rule_findings(*texts: str, environment: Environment | None = None) -> tuple[Diagnostic, ...]:
    """Findings about the texts, the first of which is FILE."""
    return findings_of(*BESIDE, *texts, environment=environment)


def told(*texts: str, environment: Environment | None = None) -> list[str]:
    """``f3.yaml:LINE:COLUMN RULE`` of each finding."""
    found = rule_findings(*texts, environment=environment)
    return [f"{each.position.file}:{each.position.line}:{each.position.column} {each.rule}" for each in found]
