"""aws:eks/accessEntry:AccessEntry

Performed through whatever endpoint the provider names for EKS. moto has no access entries, so against the sandbox's
own endpoint a create fails as that endpoint answers.
"""

from collections.abc import Mapping

from engine.sandbox.aws.deleting import delete, described
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.schema import Input, equal_as_sets
from engine.sandbox.aws.session import AwsError, Region
from engine.sandbox.aws.tagging import changed_tags, remote_tags
from engine.sandbox.aws.waiting import patiently
from engine.sandbox.aws.wire import Properties

_GONE = ("ResourceNotFoundException", "ResourceNotFound")
PROPAGATION_SECONDS = 2 * MINUTE_SECONDS


class AccessEntry(Resource):
    token = "aws:eks/accessEntry:AccessEntry"
    noun = "EKS Access Entry"
    create_seconds = 10 * MINUTE_SECONDS
    delete_seconds = 10 * MINUTE_SECONDS
    inputs = (
        Input("clusterName", required=True, replaces=True),
        Input("principalArn", required=True, replaces=True),
        Input("type", replaces=True, default="STANDARD"),
        Input("kubernetesGroups", computed=True, same=equal_as_sets),
        Input("userName", computed=True),
    )
    outputs = ("accessEntryArn", "createdAt", "modifiedAt", "tagsAll")

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        cluster, principal = inputs["clusterName"], inputs["principalArn"]
        patiently(
            aws.pace,
            PROPAGATION_SECONDS,
            _principal_is_not_there_yet,
            lambda: aws.call(
                "eks",
                "CreateAccessEntry",
                clusterName=cluster,
                principalArn=principal,
                type=inputs["type"],
                kubernetesGroups=inputs.get("kubernetesGroups"),
                username=inputs.get("userName"),
                tags=inputs.get("tagsAll") or None,
            ),
        )
        return f"{cluster}:{principal}"

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        cluster, principal = identity.split(":", 1)
        answer = described(aws, "eks", "DescribeAccessEntry", _GONE, clusterName=cluster, principalArn=principal)
        if answer is None:
            return None
        entry = answer["accessEntry"]
        return {
            "accessEntryArn": entry["accessEntryArn"],
            "clusterName": entry["clusterName"],
            "principalArn": entry["principalArn"],
            "type": entry.get("type"),
            "kubernetesGroups": entry.get("kubernetesGroups") or [],
            "userName": entry.get("username"),
            "createdAt": entry["createdAt"].isoformat(),
            "modifiedAt": entry["modifiedAt"].isoformat(),
            "tagsAll": remote_tags(aws.session.config, entry.get("tags") or {}),
        }

    def retag(self, aws: Region, identity: str, known: Properties, new: Mapping[str, str]) -> None:
        gone, put = changed_tags(known.get("tagsAll"), new)
        arn = known["accessEntryArn"]
        if gone:
            aws.call("eks", "UntagResource", resourceArn=arn, tagKeys=gone)
        if put:
            aws.call("eks", "TagResource", resourceArn=arn, tags=put)

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if changed & {"kubernetesGroups", "userName"}:
            aws.call(
                "eks",
                "UpdateAccessEntry",
                clusterName=new["clusterName"],
                principalArn=new["principalArn"],
                kubernetesGroups=new.get("kubernetesGroups"),
                username=new.get("userName"),
            )
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        cluster, principal = identity.split(":", 1)
        delete(
            aws,
            "DeleteAccessEntry",
            _GONE,
            timeout,
            service="eks",
            clusterName=cluster,
            principalArn=principal,
        )


def _principal_is_not_there_yet(error: Exception) -> bool:
    return isinstance(error, AwsError) and (
        error.code.startswith("InvalidParameter") and "invalid principal" in error.message
    )
