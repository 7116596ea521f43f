"""A Pulumi stack file as an environment."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import labels
from engine.model.diagnostic import Position
from engine.model.environment import (
    Caps,
    Cluster,
    Environment,
    InCluster,
    Lanes,
    Network,
    NetworkMode,
    Pricing,
    RunnerKind,
    Running,
    Sandbox,
)
from engine.model.interruption_queue import queue_name
from engine.model.quantity import Resources
from engine.policy.budgets import cron_problem
from engine.policy.findings import Findings, ObjectFindings, closest
from engine.policy.located import Fields, Items, Path, Place, Scalar, Source, find
from engine.policy.schema import field_names, validated
from engine.policy.stack_schema import MANAGED, NAMESPACE, NetworkPart, SandboxPart, StackPart
from engine.policy.yaml_reader import read_documents

DISCOVERY_TAG = "karpenter.sh/discovery"
# What a node needs of IAM to join an EKS cluster, to pull images and to be reached by Session Manager.
NODE_ROLE_POLICIES = (
    "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
    "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy",
    "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly",
    "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
)
_RESERVED_TAG_PREFIXES = ("nodewright.dev/", "aws:")


def load_environment(name: str, file: str, content: bytes) -> Environment:
    """The environment ``name`` of a stack file; ``file`` is its display path.

    Other namespaces' keys and Pulumi's own are passed over. Raises InvalidInput with all findings.
    """
    findings = Findings()
    ours = _our_keys(file, content, findings)
    part = validated(StackPart, ours) if ours is not None else None
    if part is not None and ours is not None:
        _check(part, ours)
    findings.raise_errors()
    if part is None or ours is None:
        raise AssertionError("a stack file that cannot be read has an error to tell")
    return _environment(name, part, dict(_rule_positions(part, ours)))


def _our_keys(file: str, content: bytes, findings: Findings) -> ObjectFindings | None:
    """The part of the file that is ours, as an object of its own; None when there is none, which is told."""
    documents = [document for document in read_documents(file, content, findings) if document.root is not None]
    source = documents[0].source if documents else Source(file, ())
    root = documents[0].root if documents else None
    for extra in documents[1:]:
        place = extra.root.place if extra.root is not None else Place(1, 1)
        findings.error(source.position(place), "too-many", "a stack file holds one YAML document")
    config = find(root, ("config",)) if root is not None else None
    if not isinstance(config, Fields):
        if not findings.has_errors:
            message = f"the stack file has no config, so {NAMESPACE}:region, cluster and network are missing"
            place = root.place if root is not None else Place(1, 1)
            findings.error(source.position(place), "missing-field", message, f"begin with config:, {NAMESPACE}:region:")
        return None
    place = root.key_places["config"] if isinstance(root, Fields) else config.place
    return _selected(config, place, ObjectFindings(findings, source, config))


def _selected(config: Fields, place: Place, findings: ObjectFindings) -> ObjectFindings:
    ours = Fields(place)
    known = field_names(StackPart)
    for key, value in config.fields.items():
        namespace, colon, _ = key.partition(":")
        if not colon:
            hint = f"write {NAMESPACE}:{key}" if f"{NAMESPACE}:{key}" in known else "write NAMESPACE:KEY"
            message = f"{key[:60]!r} has no namespace, so Pulumi cannot read this file"
            findings.error_at_key((key,), "no-namespace", message, hint)
        elif namespace == NAMESPACE and isinstance(value, Fields) and list(value.fields) == ["secure"]:
            message = f"{key} is encrypted; Nodewright's keys are no secrets, and are read without the passphrase"
            findings.error_at_key((key,), "encrypted", message, "set it again without --secret")
        elif namespace == NAMESPACE:
            ours.put(key, value, config.key_places[key])
        elif closest(namespace, [NAMESPACE]) and f"{NAMESPACE}:{key.partition(':')[2]}" in known:
            message = f"the namespace {namespace} is not {NAMESPACE}, so this key would be passed over"
            findings.error_at_key((key,), "no-namespace", message, f"did you mean {NAMESPACE}?")
    policies = ours.fields.get(f"{NAMESPACE}:policies")
    if isinstance(policies, Scalar):
        ours.fields[f"{NAMESPACE}:policies"] = Items(policies.place, [policies])
    return ObjectFindings(findings.findings, findings.source, ours)


def _check_in_cluster(part: StackPart, findings: ObjectFindings) -> None:
    """A runner needs an image, and a CronJob a schedule that cron can read."""
    inside = part.in_cluster
    if inside is None or inside.runner is RunnerKind.NONE:
        return
    if not inside.image:
        message = f"inCluster.runner is {inside.runner.value}, and no image says what it runs"
        hint = "write image: REGISTRY/NAME:TAG of an image that holds Nodewright and this project"
        findings.error_at_key(_key("inCluster", "runner"), "missing-field", message, hint)
    if inside.runner is RunnerKind.CRON_JOB and cron_problem(inside.schedule):
        message = f"{inside.schedule[:60]!r} is no schedule: {cron_problem(inside.schedule)}"
        findings.error_at_key(_key("inCluster", "schedule"), "bad-value", message, "write one such as */5 * * * *")


def _key(name: str, *inside: str | int) -> Path:
    return (f"{NAMESPACE}:{name}", *inside)


def _check(part: StackPart, findings: ObjectFindings) -> None:
    if not part.network.zones and not findings.lacks_part(_key("network")):
        message = "network.zones names no zone, so no node could be placed"
        findings.error_at_key(_key("network", "zones"), "missing-field", message, "write zones: {us-east-1b: use1-az1}")
    for zone in part.network.zones:
        if zone[:-1] != part.region:
            message = f"the zone {zone} is not of the region {part.region}"
            hint = f"zones of it are {part.region}a and so on"
            findings.error_at_key(_key("network", "zones", zone), "contradiction", message, hint)
    if part.network.mode is NetworkMode.EXISTING and part.network.discovery_tags is not None:
        message = "discoveryTags are put on an owned network; on an existing one they say nothing"
        findings.warning_at_key(_key("network", "discoveryTags"), "no-effect", message, "remove them")
    _check_in_cluster(part, findings)
    if part.run.batch_idle > part.run.batch_max:
        idle, longest = part.run.batch_idle.total_seconds(), part.run.batch_max.total_seconds()
        message = f"run.batchIdle, {idle:g}s, is longer than run.batchMax, {longest:g}s"
        findings.error_at_key(_key("run"), "contradiction", message, "make batchMax the longer of the two")
    for key in part.tags:
        if key.startswith(_RESERVED_TAG_PREFIXES) or key in (labels.TAG_NODE_POOL, labels.TAG_NAME):
            message = f"the tag {key} is set by the engine or by AWS; a stack file may not set it"
            findings.error_at_key(_key("tags", key), "reserved-tag", message, "remove it")


def _rule_positions(part: StackPart, findings: ObjectFindings) -> Iterator[tuple[str, Position]]:
    for rule, values in part.params.items():
        yield f"params[{rule}]", findings.at_key(_key("params", rule))
        yield from ((f"params[{rule}][{name}]", findings.at(_key("params", rule, name))) for name in values)
    for rule in part.enforcement:
        yield f"enforcement[{rule}]", findings.at_key(_key("enforcement", rule))


def _environment(name: str, part: StackPart, rule_positions: dict[str, Position]) -> Environment:
    cluster, pricing = part.cluster, part.pricing
    policies = part.node_role_policies
    return Environment(
        name=name,
        region=part.region,
        cluster=Cluster(**cluster.model_dump()),
        network=_network(part.network, cluster.name),
        policies=tuple(part.policies),
        default_node_class=part.default_node_class,
        limits={pool: Resources.parse(limits) for pool, limits in part.limits.items()},
        caps=Caps(part.caps.launches, part.caps.removals, part.caps.added_usd_per_hour),
        catalog=part.catalog,
        pricing=Pricing(pricing.overrides, pricing.discounts, pricing.file),
        tags=part.tags,
        node_role_policies=NODE_ROLE_POLICIES if policies is None else tuple(policies),
        endpoint_url=part.endpoint,
        sandbox=_sandbox(part.sandbox),
        store=part.store,
        backend=part.backend,
        run=Running(**part.run.model_dump()),
        lanes=Lanes(**part.lanes.model_dump()),
        in_cluster=InCluster(**part.in_cluster.model_dump()) if part.in_cluster else None,
        paused=part.paused,
        params=part.params,
        enforcement=part.enforcement,
        cel_engine=part.cel_engine,
        interruption_queue=_queue(name, part),
        owns_interruption_queue=part.interruption_queue == MANAGED,
        rule_positions=rule_positions,
    )


def _queue(environment: str, part: StackPart) -> str:
    return queue_name(environment) if part.interruption_queue == MANAGED else part.interruption_queue or ""


def _sandbox(part: SandboxPart | None) -> Sandbox | None:
    return None if part is None else Sandbox(part.pods, part.seed, tuple(part.manifests), part.cluster)


def _network(part: NetworkPart, cluster: str) -> Network:
    """An owned network that names no discovery tags gets Karpenter's usual one, of the cluster's name."""
    tags = part.discovery_tags
    if tags is None:
        tags = {DISCOVERY_TAG: cluster} if part.mode is NetworkMode.OWNED else {}
    return Network(part.mode, part.zones, part.cidr, tags)
