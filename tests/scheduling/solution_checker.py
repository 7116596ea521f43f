"""Judges a solution by Kubernetes' own rules, written apart from the scheduler: nothing here imports its algorithms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from engine.model.constraint import Requirement, Taint, Toleration
from engine.model.pod import Placing, Pod, PodKey
from engine.scheduling.problem import NewNode, PoolState, Problem, Solution

_NEW_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def faults(problem: Problem, solution: Solution) -> list[str]:
    """Everything that is wrong with a solution, in words; empty when it is right."""
    return [
        *_each_pod_once(problem, solution),
        *_placements_hold(problem, solution),
        *_new_nodes_hold(problem, solution),
        *_limits_hold(problem, solution),
        *_caps_hold(problem, solution),
        *_bases_are_kept_or_told(problem, solution),
    ]


def _each_pod_once(problem: Problem, solution: Solution) -> Iterable[str]:
    seen = Counter(placement.pod for placement in solution.placements)
    seen.update(pod for node in solution.new_nodes for pod in node.pods)
    seen.update(unplaced.pod for unplaced in solution.unplaced)
    for pod in problem.pods:
        if seen.pop(pod.key, 0) != 1:
            yield f"{pod.key} is not in the solution exactly once"
    yield from (f"{pod} is nobody's" for pod in seen)
    for unplaced in solution.unplaced:
        pools = [refusal.node_pool for refusal in unplaced.refusals]
        if not pools or len(set(pools)) != len(pools):
            yield f"{unplaced.pod} has no refusal or two of one pool: {pools}"
        if pools != [""] and set(pools) != {state.pool.name for state in problem.pools}:
            yield f"{unplaced.pod} is not refused by every pool: {pools}"


def _placements_hold(problem: Problem, solution: Solution) -> Iterable[str]:
    pods = {pod.key: pod for pod in problem.pods}
    nodes = {(node.node, node.claim): node for node in problem.existing}
    on: dict[tuple[str | None, str | None], list[Pod]] = {}
    for placement in solution.placements:
        on.setdefault((placement.node, placement.claim), []).append(pods[placement.pod])
    for name, bound in on.items():
        node = nodes.get(name)
        if node is None:
            yield f"{name} is no node"
            continue
        for pod in bound:
            yield from _binds(pod, node.labels, node.taints)
        yield from _has_room(str(name), bound, dict(node.room))


def _new_nodes_hold(problem: Problem, solution: Solution) -> Iterable[str]:
    pods = {pod.key: pod for pod in problem.pods}
    states = {state.pool.name: state for state in problem.pools}
    for node in solution.new_nodes:
        state = states[node.node_pool]
        yield from _may_be_bought(node, state)
        bound = [pods[key] for key in node.pods]
        for pod in bound:
            yield from _binds(pod, node.labels, state.pool.taints)
        room = dict(node.option.allocatable)
        if bound:
            for daemon in problem.daemon_sets:
                present = {**node.labels, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
                if not list(_may_run(daemon.placing, present, state.pool.taints)):
                    for resource, amount in daemon.placing.requests.items():
                        room[resource] = room.get(resource, 0) - amount
        yield from _has_room(node.option.offering.key, bound, room)
        yield from _is_wanted(node, bound, state)


def _may_be_bought(node: NewNode, state: PoolState) -> Iterable[str]:
    name = f"{node.node_pool}: {node.option.offering.key}"
    if node.option not in state.options:
        yield f"{name} is no option of its pool"
    if node.option.usd_per_hour is None or not node.option.is_available:
        yield f"{name} cannot be bought"
    if state.not_ready is not None:
        yield f"{name} is of a pool that is not ready"
    if any(node.labels.get(_new(key)) != value for key, value in node.option.labels.items() if key == _new(key)):
        yield f"{name} lost labels of its option"
    for requirement in state.pool.requirements:
        if requirement.key.startswith("example.com/") and not _meets(requirement, node.labels):
            yield f"{name} breaks its pool's {requirement}"


def _is_wanted(node: NewNode, bound: list[Pod], state: PoolState) -> Iterable[str]:
    if not bound and not node.for_base_capacity:
        yield f"{node.option.offering.key} is for nobody"
    if node.for_base_capacity:
        return
    if state.pool.replicas is not None:
        yield f"{node.node_pool} is static and makes a node for pods"
    asks = any(amount for pod in bound for name, amount in pod.placing.requests.items() if _is_device(name))
    if node.option.instance_type.is_accelerated and not asks and not state.pool.open_to_all_pods:
        yield f"{node.option.offering.key} is accelerated and nobody on it asks for that"


def _limits_hold(problem: Problem, solution: Solution) -> Iterable[str]:
    told = {(use.node_pool, use.resource): use for use in solution.limits}
    for state in problem.pools:
        planned: Counter[str] = Counter()
        for node in solution.new_nodes:
            if node.node_pool == state.pool.name:
                planned.update(dict(node.option.capacity))
                planned["nodes"] += 1
        for resource, limit in state.limits.items():
            used = state.used.get(resource, 0)
            if planned[resource] and used + planned[resource] > limit:
                yield f"{state.pool.name}: {resource} {used}+{planned[resource]} of {limit}"
            use = told.pop((state.pool.name, resource), None)
            if use is None or (use.limit, use.used, use.planned) != (limit, used, planned[resource]):
                yield f"{state.pool.name}: {resource} is told as {use}"
    yield from (f"a limit of nobody: {use}" for use in told.values())


def _caps_hold(problem: Problem, solution: Solution) -> Iterable[str]:
    if len(solution.new_nodes) > problem.caps.launches:
        yield "too many launches"
    added = sum(node.option.usd_per_hour.micros for node in solution.new_nodes if node.option.usd_per_hour)
    if added > problem.caps.added_usd_per_hour.micros:
        yield "too many dollars an hour"


def _bases_are_kept_or_told(problem: Problem, solution: Solution) -> Iterable[str]:
    launched = Counter(node.node_pool for node in solution.new_nodes)
    short = {shortfall.node_pool: shortfall for shortfall in solution.base_shortfalls}
    for state in problem.pools:
        base = state.pool.replicas if state.pool.replicas is not None else state.pool.min_nodes
        have = state.nodes + launched[state.pool.name]
        told = short.pop(state.pool.name, None)
        if (told is None) is not (have >= base):
            yield f"{state.pool.name} has {have} of {base} and tells {told}"
        if told is not None and (told.have, told.wanted) != (have, base):
            yield f"{state.pool.name} has {have} of {base} and tells {told}"
    yield from (f"a base of nobody: {name}" for name in short)


def _binds(pod: Pod, labels: Mapping[str, str], taints: Iterable[Taint]) -> Iterable[str]:
    if pod.placing.unsupported:
        yield f"{pod.key} has constraints that nobody checked"
    yield from (f"{pod.key}: {why}" for why in _may_run(pod.placing, labels, taints))


def _may_run(placing: Placing, labels: Mapping[str, str], taints: Iterable[Taint]) -> Iterable[str]:
    for taint in taints:
        if taint.effect.value != "PreferNoSchedule" and not any(
            _tolerates(each, taint) for each in placing.tolerations
        ):
            yield f"does not tolerate {taint}"
    for key, value in placing.node_selector.items():
        if _label(labels, key) != value:
            yield f"selects {key}={value}"
    terms = placing.affinity_terms
    if terms and not any(term and all(_meets(each, labels) for each in term) for term in terms):
        yield "meets no affinity term"


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    effect = toleration.effect is None or toleration.effect == taint.effect
    if not toleration.key:
        return effect and toleration.exists
    return effect and toleration.key == taint.key and (toleration.exists or toleration.value == taint.value)


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value, values = _label(labels, requirement.key), requirement.values
    if requirement.operator.value == "In":
        return value in values
    if requirement.operator.value == "NotIn":
        return value not in values
    if requirement.operator.value == "Exists":
        return value is not None
    if requirement.operator.value == "DoesNotExist":
        return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    number, bound = int(value), int(values[0])
    compared = {"Gt": number > bound, "Lt": number < bound, "Gte": number >= bound, "Lte": number <= bound}
    return compared[requirement.operator.value]


def _has_room(name: str, bound: list[Pod], room: Mapping[str, int]) -> Iterable[str]:
    asked: Counter[str] = Counter()
    for pod in bound:
        asked.update(dict(pod.placing.requests))
    for resource, amount in asked.items():
        if amount and amount > room.get(resource, 0):
            yield f"{name} has {room.get(resource, 0)} {resource}, its pods ask {amount}"


def _is_device(resource: str) -> bool:
    return resource.endswith("/gpu") or "neuron" in resource or "gaudi" in resource or "qaic" in resource


def _new(key: str) -> str:
    return _NEW_NAMES.get(key, key)


def _label(labels: Mapping[str, str], key: str) -> str | None:
    by_new_name = {_new(name): value for name, value in labels.items()}
    return {**by_new_name, **{name: value for name, value in labels.items() if name == _new(name)}}.get(_new(key))


def where(solution: Solution) -> dict[PodKey, str]:
    """Each placed pod with the node, claim or offering that it got."""
    found = {placement.pod: placement.node or placement.claim or "" for placement in solution.placements}
    found.update({pod: node.option.offering.key for node in solution.new_nodes for pod in node.pods})
    return found
