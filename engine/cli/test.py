"""``nodewright test``: the tests that lie beside policies."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.terminal import ExitCode, out, told_of_faults


class TestOutput(str, Enum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


def run_tests(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Test files, or folders of them; those of the policies by default."),
    ] = None,
    environment: Annotated[
        str, typer.Option("--env", metavar="ENV", help="Whose parameters count; the first environment by default.")
    ] = "",
    run: Annotated[
        str, typer.Option("--run", metavar="NAME", help="Only cases with this in the case's, rule's or test's name.")
    ] = "",
    cover: Annotated[
        float | None,
        typer.Option("--cover", metavar="PERCENT", min=0, max=100, help="A rule that is covered less fails."),
    ] = None,
    require_tests: Annotated[
        bool, typer.Option("--require-tests", help="A rule that no case evaluates fails.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option("--cel-engine", metavar="ENGINE", help="cel-expr or cel-python; the environment's by default."),
    ] = "",
    output: Annotated[
        TestOutput, typer.Option("--output", "-o", help="text for people, json for programs, junit for CI.")
    ] = TestOutput.TEXT,
) -> None:
    """Run the tests of policy files. Exit 0 all pass, 1 one failed, 2 a policy or test file is invalid."""
    with told_of_faults():
        from engine.reconcile.policy_testing import Wanted, run_policy_tests
        from engine.reconcile.workspace import find_workspace

        wanted = Wanted(
            paths=tuple(paths or ()),
            environment=environment,
            run=run,
            engine=engine,
            threshold=cover,
            needs_tests=require_tests,
        )
        ran = run_policy_tests(find_workspace(context.obj), wanted)
        if output is TestOutput.JSON:
            from engine.report.policy_test_report import policy_tests_json

            typer.echo(policy_tests_json(ran))
        elif output is TestOutput.JUNIT:
            from engine.report.junit_report import policy_tests_junit

            typer.echo(policy_tests_junit(ran))
        else:
            from engine.report.policy_test_report import render_policy_tests

            out().print(render_policy_tests(ran))
        if not ran.is_valid:
            raise typer.Exit(ExitCode.INVALID)
        if not ran.passes:
            raise typer.Exit(ExitCode.FAILED)
