"""Two versions of a project's policy, compared: in what they say, and in what a pass would do by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from attrs import evolve, frozen

from engine.model.diagnostic import Diagnostic, InvalidInput
from engine.model.fault import Fault
from engine.model.money import UsdPerHour
from engine.policy.findings import did_you_mean
from engine.policy.lint import lint
from engine.reconcile.assembly import catalog_of
from engine.reconcile.diffing_definitions import calendar_changes, definition_changes, finding_changes, limit_changes
from engine.reconcile.diffing_moments import Loaded, Recorded, moment_difference
from engine.reconcile.diffing_snapshots import generated, kept_snapshots, moved, named_snapshots, snapshots_of
from engine.reconcile.revisions import Side, opened
from engine.reconcile.workspace import Workspace, find_workspace
from engine.report.diff_report import Both, Change, EnvironmentDifference, PolicyDifference
from engine.report.words import counted, signed


@frozen
class Thresholds:
    """What a change may do at any moment before it is too much; None is no such threshold."""

    more_cost: UsdPerHour | None = None
    more_removals: int | None = None

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Thresholds:
        """From ``more-cost=12.50`` and ``more-removals=3``. Raises Fault."""
        made = cls()
        for text in texts:
            name, _, value = text.partition("=")
            try:
                if name == "more-cost":
                    made = evolve(made, more_cost=UsdPerHour.parse(value))
                elif name == "more-removals" and value.isascii() and value.isdigit():
                    made = evolve(made, more_removals=int(value))
                else:
                    raise ValueError(f"{text!r} is no threshold")
            except ValueError as error:
                raise Fault(
                    f"--fail-on: {error}", "write more-cost=USD in dollars an hour, or more-removals=N"
                ) from None
        return made

    def over(self, difference: PolicyDifference) -> tuple[str, ...]:
        """The thresholds that are passed, each a sentence."""
        told = []
        cost, removals = difference.more_usd_per_hour, difference.more_removals
        if self.more_cost is not None and cost > self.more_cost:
            told.append(f"{signed(cost)} is more than the {self.more_cost} that --fail-on more-cost lets pass")
        if self.more_removals is not None and removals > self.more_removals:
            more = counted(removals, "more removal")
            told.append(f"{more} is over the {self.more_removals} that --fail-on more-removals lets pass")
        return tuple(told)


def difference(
    project: Path,
    base: str,
    head: str,
    names: Sequence[str] = (),
    snapshots: Sequence[Path] = (),
    thresholds: Thresholds = Thresholds(),
    at: Sequence[datetime] = (),
) -> PolicyDifference:
    """Compare the environments of these names (none: all) on these snapshots (none: those that the project keeps).

    ``project`` is a folder inside the project. ``at``: each snapshot is decided as if taken at each of these times,
    and not at its own. Raises Fault; what does not load is part of the answer.
    """
    named = named_snapshots(snapshots)
    with opened(base, project) as old, opened(head, project) as new:
        known = sorted({*old.workspace.environment_names(), *new.workspace.environment_names()})
        chosen = _chosen(names, known)
        every = named or kept_snapshots((new.workspace, old.workspace, *_here(project)))
        is_told = bool(named and names)
        compared = [
            _Comparing(old, new, name, every if is_told else snapshots_of(name, every, known), at) for name in chosen
        ]
        found = [each.difference() for each in compared]
    findings = Both(
        {finding for each in compared for finding in each.findings.base},
        {finding for each in compared for finding in each.findings.head},
    )
    made = PolicyDifference(
        sides=Both(old.name, new.name),
        environments=tuple(found),
        findings=finding_changes(findings.base, findings.head),
    )
    return evolve(made, over=thresholds.over(made))


def _chosen(names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    if not known:
        raise Fault("neither side has an environment: no stacks/Pulumi.ENV.yaml", "an environment is a stack file")
    for name in names:
        if name not in known:
            raise Fault(f"neither side has an environment {name[:60]!r}", did_you_mean(name, known))
    return tuple(dict.fromkeys(names)) or known


def _here(project: Path) -> tuple[Workspace, ...]:
    """The project of the working tree, where there is one: its snapshots may not be committed yet."""
    try:
        return (find_workspace(project),)
    except Fault:
        return ()


class _Comparing:
    """One environment on both sides."""

    def __init__(
        self, base: Side, head: Side, name: str, snapshots: Sequence[Recorded], at: Sequence[datetime]
    ) -> None:
        self._base, self._head, self._name, self._snapshots, self._at = base, head, name, snapshots, at
        self.findings: Both[tuple[Diagnostic, ...]] = Both((), ())

    def difference(self) -> EnvironmentDifference:
        there = Both(*(self._name in side.workspace.environment_names() for side in (self._base, self._head)))
        if not (there.base and there.head):
            only = self._head if there.head else self._base
            change = Change.ADDED if there.head else Change.REMOVED
            loaded = self._loaded(only, None)
            wrong = loaded if isinstance(loaded, tuple) else ()
            both = Both((), wrong) if there.head else Both(wrong, ())
            note = f"only {only.name} has this environment, so there is nothing to compare it with"
            return EnvironmentDifference(self._name, change, both, notes=(note,))
        base = self._loaded(self._base, None)
        head = self._loaded(self._head, base if isinstance(base, Loaded) else None)
        if isinstance(base, tuple) or isinstance(head, tuple):
            invalid = Both(base if isinstance(base, tuple) else (), head if isinstance(head, tuple) else ())
            return EnvironmentDifference(self._name, invalid=invalid)
        self.findings = Both(base.findings, head.findings)
        return self._compared(base, head)

    def _compared(self, base: Loaded, head: Loaded) -> EnvironmentDifference:
        made_up = None if self._snapshots else generated((base, head), self._head.workspace.root)
        moments = moved(self._snapshots or ((made_up,) if made_up is not None else ()), self._at)
        notes = () if moments else (f"no snapshot of {self._name} is recorded, so no plans are compared",)
        return EnvironmentDifference(
            self._name,
            definitions=definition_changes(base, head),
            limits=limit_changes(base, head),
            calendar=calendar_changes(base, head, moments[0].snapshot) if moments else (),
            moments=tuple(moment_difference(base, head, each) for each in moments),
            notes=notes,
        )

    def _loaded(self, side: Side, other: Loaded | None) -> Loaded | tuple[Diagnostic, ...]:
        """The environment as the side has it, or why it does not load. Equal catalogs are one. Raises Fault."""
        try:
            environment = side.workspace.environment(self._name)
            policy = side.workspace.policy(environment)
            catalog = catalog_of(side.workspace, environment)
            if other is not None and other.catalog.digest == catalog.digest:
                catalog = other.catalog
            return Loaded(environment, policy, catalog, (*policy.warnings, *lint(policy, catalog)))
        except InvalidInput as invalid:
            return invalid.diagnostics
        except Fault as fault:
            raise side.told(fault) from None
