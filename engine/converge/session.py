"""What converging keeps between updates: the CLI, AWS plugins that engines attach to, a converger for each lane."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import evolve

from engine.converge.attached_plugin import AttachedPlugin
from engine.converge.driver import Converger
from engine.converge.lane import LaneConverger
from engine.converge.lane_project import lane_project, stack_file
from engine.converge.pulumi_process import PulumiCli
from engine.converge.recovery import FoundationFinder
from engine.converge.toolchain import Toolchain
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.lane import stacks_of


class Session:
    """Lives as long as a loop, or as one command; a context that ends its plugin. Safe to use from many threads.

    Different lanes may converge at once; one lane does one thing at a time.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        project: Path,
        environment: Environment,
        variables: Mapping[str, str],
        finder: FoundationFinder | None = None,
    ) -> None:
        """`project` holds Pulumi.yaml; `variables` are the whole environment of the CLI's processes.

        `finder` looks for parts of the foundation whose making was cut off; without one they are made again.
        """
        self._project = project
        self._environment = environment
        self._variables = variables
        self._official = toolchain.aws_plugin
        self._attaches = "PULUMI_DEBUG_PROVIDERS" not in variables
        self._stand_in = AttachedPlugin(variables, serves_many=True)
        self._plugins: dict[str, AttachedPlugin] = {}
        cli = PulumiCli(toolchain.pulumi, project, variables)
        self._cli = cli
        # The main stack has two providers, which differ in how often they retry: attached to one official plugin
        # they would both be what came last. So there each engine starts its own plugins, one for each provider.
        main = evolve(cli, attached=self._stand_in.attached) if self._attaches and self._official is None else cli
        self._main = Converger(main, environment, finder, lanes=self._other_lanes)
        self._lock = threading.Lock()
        self._lanes: dict[str, LaneConverger] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for plugin in (self._stand_in, *self._plugins.values()):
            plugin.stop()

    def lane(self, stack: str) -> Converger:
        """The converger of that stack: the environment's own, or a further lane. Raises Fault for another one's."""
        if stack == self._environment.name:
            return self._main
        with self._lock:
            if stack not in self._lanes:
                self._lanes[stack] = self._new_lane(stack)
            return self._lanes[stack]

    def prepare_lane(self, stack: str) -> None:
        """Do ahead of need what a first launch would wait for: make the stack, start the plugin. Raises Fault."""
        lane = self.lane(stack)
        if self._attaches and (self._official is None or lane is not self._main):
            self._plugin_of(stack).start()
        lane.ensure_stack()

    def interrupt(self) -> None:
        """Let the steps in flight finish and begin no other; a second call breaks them off.

        An update under way has an outcome that says so; a later one raises KeyboardInterrupt.
        """
        self._cli.interrupts.interrupt()

    def _new_lane(self, stack: str) -> LaneConverger:
        name = self._environment.name
        if stack_file(self._project, stack).is_file():
            raise Fault(
                f"environment {name} cannot use stack {stack!r} as a lane: it is an environment of its own, by its "
                f"stack file stacks/Pulumi.{stack}.yaml",
                f"give that environment a name that does not begin with {name!r} and a dot",
            )
        cli = evolve(self._cli, project=lane_project(self._project, name, stack))
        if self._attaches:
            if self._official is not None:
                self._plugins[stack] = AttachedPlugin(self._variables, self._official, serves_many=False)
            cli = evolve(cli, attached=self._plugin_of(stack).attached)
        return LaneConverger(cli, self._environment, self._main, stack=stack)

    def _plugin_of(self, stack: str) -> AttachedPlugin:
        return self._plugins.get(stack, self._stand_in)

    def _other_lanes(self, document: DesiredDocument | None) -> Sequence[Converger]:
        """Those that the document names; without one all that the backend holds, forgotten ones too."""
        name = self._environment.name
        if document is not None:
            return tuple(self.lane(stack) for stack in stacks_of(document) if stack != name)
        numbered = re.compile(re.escape(name) + r"\.\d+")
        found = (stack for stack in self._main.stack.siblings() if numbered.fullmatch(stack))
        return tuple(self.lane(stack) for stack in found if not stack_file(self._project, stack).is_file())
