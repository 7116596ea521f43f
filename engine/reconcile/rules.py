"""The files that a loop goes by, read again when they change. What does not load changes nothing, and is told."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, fields

from engine.model.catalog import Catalog
from engine.model.diagnostic import InvalidInput
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.reconcile.ports import Ports
from engine.reconcile.troubles import Troubles, as_fault
from engine.reconcile.workspace import Workspace

# Other parts of a stack file are built into connections and a session that stand.
_LIVE = frozenset(
    {"policies", "default_node_class", "limits", "caps", "pricing", "run", "lanes", "paused"}
    | {"params", "enforcement", "cel_engine", "rule_positions"}
)
_LOOK_SECONDS = 1.0
_HELD = "the last good policy stays in force until the files load: nodewright check"

MakeCatalog = Callable[[Workspace, Environment], Catalog]


class Rules:
    """``overridden`` lays a command's options over an environment that was read. Looks at most once a second."""

    def __init__(
        self,
        workspace: Workspace,
        monotonic: Callable[[], float],
        make_catalog: MakeCatalog,
        overridden: Callable[[Environment], Environment] = lambda environment: environment,
    ) -> None:
        self._workspace, self._monotonic = workspace, monotonic
        self._make_catalog, self._overridden = make_catalog, overridden
        self._stamp = ""
        self._prices: bytes | None = None
        self._looked_at = float("-inf")

    def about_to_read(self, environment: Environment) -> None:
        """To be called before the first reading: what changes from then on will be seen. Raises Fault."""
        self._stamp, self._prices = self._workspace.stamp(environment), self._workspace.price_file(environment)

    def current(self, ports: Ports, troubles: Troubles) -> Ports:
        """The ports with the policy, prices and settings of now; the last good ones while the files do not load."""
        if self._monotonic() - self._looked_at < _LOOK_SECONDS:
            return ports
        self._looked_at = self._monotonic()
        try:
            stamp = self._workspace.stamp(ports.environment)
            if stamp == self._stamp:
                return ports
            self._stamp = stamp
            changed = self._read(ports, troubles)
        except InvalidInput as invalid:
            troubles.tell("policy", Fault(str(invalid), _HELD))
            return ports
        except Exception as error:
            # Not for what the files say, so perhaps no longer at the next look, though they stay as they are.
            self._stamp = ""
            troubles.tell("policy", Fault(str(as_fault(error)), _HELD))
            return ports
        troubles.over("policy", "the policy and stack files load again")
        return changed

    def _read(self, ports: Ports, troubles: Troubles) -> Ports:
        before = ports.environment
        read = self._overridden(self._workspace.environment(before.name))
        live = {name: getattr(read, name) for name in _LIVE}
        environment = evolve(before, **live)
        fixed = [
            each.name
            for each in fields(Environment)
            if each.name not in _LIVE and getattr(read, each.name) != self._as_started(each.name, before, read)
        ]
        if fixed:
            names = ", ".join(f"nodewright:{name}" for name in fixed)
            troubles.tell("stack file", Fault(f"{names} changed in the stack file", "it counts from the next start on"))
        else:
            troubles.over("stack file")
        policy = self._workspace.policy(environment)
        prices = self._workspace.price_file(environment)
        if (environment.pricing, prices) != (before.pricing, self._prices):
            # Only then: where types and zones are EC2's own, asking for them takes seconds.
            ports = evolve(ports, catalog=self._make_catalog(self._workspace, environment))
            self._prices = prices
        return evolve(ports, environment=environment, policy=policy)

    def _as_started(self, name: str, before: Environment, read: Environment) -> object:
        """A sandbox's addresses are filled in when it starts; its file never holds them."""
        filled_in = read.sandbox is not None and name in ("endpoint_url", "cluster")
        return getattr(read if filled_in else before, name)
