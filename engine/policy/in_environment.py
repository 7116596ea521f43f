"""What only an environment can show about policy: its network's tags, its limits, what its nodes boot with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.model import labels
from engine.model.diagnostic import Position
from engine.model.environment import Environment, NetworkMode
from engine.model.policy import NodeClass, NodePool, SelectorTerm
from engine.policy.findings import Findings, did_you_mean
from engine.policy.mime import MalformedUserData
from engine.policy.user_data import MAX_USER_DATA_BYTES, user_data


def check_in_environment(
    pools: Sequence[NodePool], classes: Sequence[NodeClass], environment: Environment, findings: Findings
) -> None:
    """Tells what does not fit between the policy and the environment."""
    _check_limits(pools, environment, findings)
    _check_selectors(pools, classes, environment, findings)
    _check_user_data(pools, classes, environment, findings)


def _check_limits(pools: Sequence[NodePool], environment: Environment, findings: Findings) -> None:
    known = [pool.name for pool in pools]
    for name in environment.limits:
        if name not in known:
            message = f"nodewright:limits names the pool {name}, which no policy file defines; it limits nothing"
            position = Position(f"stacks/Pulumi.{environment.name}.yaml", 1, 1)
            findings.warning(position, "unknown-node-pool", message, did_you_mean(name, known))


def _check_selectors(
    pools: Sequence[NodePool], classes: Sequence[NodeClass], environment: Environment, findings: Findings
) -> None:
    """An owned network is used whatever the selectors say; one that would not match it means another network."""
    if environment.network.mode is not NetworkMode.OWNED:
        return
    tags = {**environment.tags, **environment.network.discovery_tags}
    used = {pool.node_class for pool in pools}
    for node_class in classes:
        if node_class.name not in used:
            continue
        for what, terms in (
            ("subnet", node_class.subnet_selector_terms),
            ("security group", node_class.security_group_selector_terms),
        ):
            if not any(_matches(term, tags) for term in terms):
                message = (
                    f"the {what} selector of {node_class.name} would not match the network that this environment"
                    " owns, which is used all the same"
                )
                shown = ", ".join(f"{key}: {value}" for key, value in sorted(tags.items())) or "no tags"
                hint = f"the network carries {shown}; change the selector or nodewright:network discoveryTags"
                findings.warning(node_class.position, "selector-misses-network", message, hint)


def _matches(term: SelectorTerm, tags: Mapping[str, str]) -> bool:
    by_tags = term.id is None and term.name is None and bool(term.tags)
    return by_tags and all(key in tags and value in ("*", tags[key]) for key, value in term.tags.items())


def _check_user_data(
    pools: Sequence[NodePool], classes: Sequence[NodeClass], environment: Environment, findings: Findings
) -> None:
    """What the nodes of each pool boot with must be readable, and fit into EC2's limit."""
    by_name = {node_class.name: node_class for node_class in classes}
    for pool in pools:
        node_class = by_name.get(pool.node_class)
        if node_class is None:
            continue
        try:
            booted = user_data(
                pool, node_class, environment.cluster, labels.ON_DEMAND, held=environment.holds_new_nodes
            )
        except MalformedUserData as error:
            message = f"the user data of the node class {node_class.name} says that it is MIME, but {error}"
            findings.error(node_class.position, "bad-user-data", message, "write a script, or correct the MIME parts")
            continue
        size = len(booted.encode())
        if size > MAX_USER_DATA_BYTES:
            message = (
                f"nodes of {pool.name} with the node class {node_class.name} would boot with {size:,} bytes of user"
                f" data; EC2 takes {MAX_USER_DATA_BYTES:,}"
            )
            hint = "let the node class's userData fetch what is large"
            findings.error(node_class.position, "user-data-too-large", message, hint)
