"""A snapshot that can be kept in a repository, and one that can be shown to others. Both decide the same.

What is recorded leaves out all that no decision reads and that says where and whose a cluster is: user data with the
cluster's address and certificates, tags, uids, addresses, account numbers. `redacted` hides people's names, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Mapping

from attrs import evolve

from engine.model.constraint import LabelSelector, PodTerm, Requirement
from engine.model.document import DesiredDocument, LaunchTemplate, node_sets
from engine.model.pod import Owner, Placing, Pod, PodKey
from engine.model.snapshot import ObjectProblem, Snapshot
from engine.model.workload import Namespace, ObjectKey, PodDisruptionBudget, Workload

_OURS = "nodewright.dev/"
# Twelve digits by themselves: in an ARN, and before a registry's host.
_ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")


def recorded(snapshot: Snapshot) -> Snapshot:
    """Without user data, tags, uids, private addresses and further annotations; account numbers become zeros.

    Names and labels stay, since rules read them. Where an environment's node roles have policies of the account's own,
    their ARNs are others then, so a plan of such a snapshot says that the foundation changes; nothing else does.
    """
    cloud, document, workload = snapshot.cloud, snapshot.document, snapshot.workload
    return evolve(
        snapshot,
        pods=tuple(evolve(pod, images=tuple(map(_without_account, pod.images)), uid="") for pod in snapshot.pods),
        cloud=evolve(
            cloud,
            instances=tuple(evolve(each, private_dns_name="") for each in cloud.instances),
            subnets={name: tuple(evolve(each, tags={}) for each in subnets) for name, subnets in cloud.subnets.items()},
        ),
        document=_document(document) if document is not None else None,
        workload=evolve(
            workload,
            priority_classes=tuple(
                evolve(each, annotations=_decided_by(each.annotations)) for each in workload.priority_classes
            ),
        ),
        problems=tuple(evolve(each, what=_without_account(each.what)) for each in snapshot.problems),
    )


def _decided_by(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Of a priority class's annotations those that are ours: what a decision reads, and what was to be that."""
    return {key: value for key, value in annotations.items() if key.startswith(_OURS)}


def _document(document: DesiredDocument) -> DesiredDocument:
    foundation = document.foundation
    claims = tuple(evolve(claim, inputs=evolve(claim.inputs, tags={})) for claim in document.claims)
    return evolve(
        document,
        foundation=evolve(
            foundation,
            role_policies=tuple(map(_without_account, foundation.role_policies)),
            launch_templates=tuple(_template(each) for each in foundation.launch_templates),
        ),
        node_sets=node_sets(claims),
    )


def _template(template: LaunchTemplate) -> LaunchTemplate:
    """It keeps its name, which was made from all of it, so that it is still known."""
    profile = _without_account(template.instance_profile) if template.instance_profile is not None else None
    devices = tuple(evolve(each, kms_key_id=None) for each in template.block_devices)
    return evolve(template, user_data="", tags={}, instance_profile=profile, block_devices=devices)


def _without_account(text: str) -> str:
    return _ACCOUNT.sub("0" * 12, text)


def redacted(snapshot: Snapshot) -> Snapshot:
    """Names, namespaces, labels, images, owners and classes become digests, uids and annotations go as in `recorded`.

    Equality of what was alike is kept, so budgets, spread and affinity still select their pods and volumes still have
    their claims. Nodes keep their names and labels.
    """
    return evolve(
        snapshot,
        pods=_pods(snapshot.pods),
        workload=_workload(snapshot.workload),
        ledger=evolve(snapshot.ledger, planned=_planned(snapshot.ledger.planned)),
        problems=tuple(_problem(problem) for problem in snapshot.problems),
    )


def _pods(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    placings: dict[Hashable, Placing] = {}
    shown = []
    for pod in pods:
        content = pod.placing.content
        if content not in placings:
            placings[content] = _placing(pod.placing)
        shown.append(_pod(pod, placings[content]))
    return tuple(shown)


def _pod(pod: Pod, placing: Placing) -> Pod:
    return evolve(
        pod,
        placing=placing,
        priority_class=_pseudonym(pod.priority_class),
        key=PodKey(namespace=_pseudonym(pod.key.namespace), name=_pseudonym(pod.key.name)),
        owner=Owner(kind=pod.owner.kind, name=_pseudonym(pod.owner.name)) if pod.owner else None,
        labels=_labels(pod.labels),
        images=tuple(map(_pseudonym, pod.images)),
        uid="",
    )


def _placing(placing: Placing) -> Placing:
    """Node labels and the domains that they make are shown, as on the nodes."""
    return evolve(
        placing,
        spreads=tuple(evolve(each, selector=_selector(each.selector)) for each in placing.spreads),
        pod_affinity=_terms(placing.pod_affinity),
        pod_anti_affinity=_terms(placing.pod_anti_affinity),
        preferred_pod_affinity=_terms(placing.preferred_pod_affinity),
        preferred_pod_anti_affinity=_terms(placing.preferred_pod_anti_affinity),
        volume_claims=tuple(map(_pseudonym, placing.volume_claims)),
    )


def _terms(terms: Iterable[PodTerm]) -> tuple[PodTerm, ...]:
    return tuple(
        evolve(
            term,
            selector=_selector(term.selector),
            namespaces=tuple(map(_pseudonym, term.namespaces)),
            namespace_selector=_selector(term.namespace_selector),
        )
        for term in terms
    )


def _planned(planned: Mapping[str, str]) -> Mapping[str, str]:
    named = ((pod.partition("/"), claim) for pod, claim in planned.items())
    return {f"{_pseudonym(namespace)}/{_pseudonym(name)}": claim for (namespace, _, name), claim in named}


def _problem(problem: ObjectProblem) -> ObjectProblem:
    name, namespace = _pseudonym(problem.name), _pseudonym(problem.namespace)
    # Its words quote the object.
    return ObjectProblem(kind=problem.kind, namespace=namespace, name=name, what="it could not be read whole")


def _workload(workload: Workload) -> Workload:
    return Workload(
        disruption_budgets=tuple(_budget(each) for each in workload.disruption_budgets),
        volumes=tuple(
            evolve(each, name=_pseudonym(each.name), storage_class=_pseudonym(each.storage_class))
            for each in workload.volumes
        ),
        volume_claims=tuple(
            evolve(
                each,
                key=_key(each.key),
                storage_class=_pseudonym(each.storage_class),
                volume=_pseudonym(each.volume),
            )
            for each in workload.volume_claims
        ),
        storage_classes=tuple(evolve(each, name=_pseudonym(each.name)) for each in workload.storage_classes),
        priority_classes=tuple(
            evolve(each, name=_pseudonym(each.name), annotations=_decided_by(each.annotations))
            for each in workload.priority_classes
        ),
        owners=tuple(evolve(each, key=_key(each.key), owner=_of_kind(each.owner)) for each in workload.owners),
        autoscalers=tuple(
            evolve(each, key=_key(each.key), target=_of_kind(each.target)) for each in workload.autoscalers
        ),
        namespaces=tuple(Namespace(_pseudonym(each.name), _labels(each.labels)) for each in workload.namespaces),
        attach_limits=workload.attach_limits,
        attachments=tuple(
            evolve(each, name=_pseudonym(each.name), volume=_pseudonym(each.volume)) for each in workload.attachments
        ),
    )


def _budget(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    return evolve(budget, key=_key(budget.key), selector=_selector(budget.selector))


def _labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {_pseudonym(key): _pseudonym(value) for key, value in labels.items()}


def _selector(selector: LabelSelector) -> LabelSelector:
    return None if selector is None else tuple(_requirement(each) for each in selector)


def _requirement(requirement: Requirement) -> Requirement:
    return evolve(requirement, key=_pseudonym(requirement.key), values=tuple(map(_pseudonym, requirement.values)))


def _key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(namespace=_pseudonym(key.namespace), name=_pseudonym(key.name))


def _of_kind(named: str) -> str:
    """Of ``KIND/NAME`` the kind stays."""
    kind, slash, name = named.partition("/")
    return f"{kind}{slash}{_pseudonym(name)}"


def _pseudonym(name: str) -> str:
    """Nothing stays nothing: an empty name says that there is none."""
    return "x" + hashlib.sha256(name.encode()).hexdigest()[:12] if name else ""
