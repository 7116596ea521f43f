"""aws:sqs/queue:Queue and aws:sqs/queuePolicy:QueuePolicy. A queue's id is its URL, and so is its policy's."""

from collections.abc import Mapping

from engine.sandbox.aws.deleting import delete, described
from engine.sandbox.aws.resource import MINUTE_SECONDS, Named, Resource, unique_name
from engine.sandbox.aws.role import same_json, says_wrong_json
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import Region, has_code
from engine.sandbox.aws.tagging import changed_tags, remote_tags
from engine.sandbox.aws.waiting import Wait, patiently
from engine.sandbox.aws.wire import Properties, Value

LONGEST_NAME = 80
GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
# A name is free again a minute after its queue was deleted.
NAME_IS_FREE_SECONDS = 70.0
_DELETED_RECENTLY = ("AWS.SimpleQueueService.QueueDeletedRecently", "QueueDeletedRecently")
_SENDERS_SECONDS = 2 * MINUTE_SECONDS

# Our names of the numbers that a queue has, and SQS's.
_NUMBERS = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "delaySeconds": "DelaySeconds",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
}
_ENCRYPTED = "SqsManagedSseEnabled"


class Queue(Resource):
    token = "aws:sqs/queue:Queue"
    noun = "SQS Queue"
    named = Named(LONGEST_NAME)
    create_seconds = 3 * MINUTE_SECONDS
    delete_seconds = 3 * MINUTE_SECONDS
    inputs = (
        Input("name", computed=True, replaces=True),
        Input("namePrefix", computed=True, replaces=True),
        Input("messageRetentionSeconds", default=345600),
        Input("visibilityTimeoutSeconds", default=30),
        Input("delaySeconds", default=0),
        Input("receiveWaitTimeSeconds", default=0),
        Input("sqsManagedSseEnabled", computed=True),
        *(
            Input(name, performed=False)
            for name in (
                "contentBasedDeduplication",
                "deduplicationScope",
                "fifoQueue",
                "fifoThroughputLimit",
                "kmsDataKeyReusePeriodSeconds",
                "kmsMasterKeyId",
                "maxMessageSize",
                "policy",
                "redriveAllowPolicy",
                "redrivePolicy",
            )
        ),
    )
    outputs = ("arn", "tagsAll", "url")
    rules = Rules(exclusive=(("name", "namePrefix"), ("kmsMasterKeyId", "sqsManagedSseEnabled")))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        name = inputs.get("name") or unique_name(inputs["namePrefix"])
        answer = patiently(
            aws.pace,
            NAME_IS_FREE_SECONDS,
            lambda error: has_code(error, *_DELETED_RECENTLY),
            lambda: aws.call(
                "sqs",
                "CreateQueue",
                QueueName=name,
                Attributes=_attributes(inputs),
                tags=inputs.get("tagsAll") or None,
            ),
        )
        return str(answer["QueueUrl"])

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        seen = attributes_of(aws, identity)
        if seen is None:
            return None
        tags = aws.call("sqs", "ListQueueTags", QueueUrl=identity).get("Tags")
        arn = str(seen["QueueArn"])
        return {
            "arn": arn,
            "url": identity,
            "name": arn.rsplit(":", 1)[-1],
            "sqsManagedSseEnabled": seen.get(_ENCRYPTED) == "true",
            **{ours: int(seen[theirs]) for ours, theirs in _NUMBERS.items() if theirs in seen},
            "tagsAll": remote_tags(aws.session.config, tags or {}),
        }

    def retag(self, aws: Region, identity: str, known: Properties, new: Mapping[str, str]) -> None:
        gone, put = changed_tags(known.get("tagsAll"), new)
        if gone:
            aws.call("sqs", "UntagQueue", QueueUrl=identity, TagKeys=gone)
        if put:
            aws.call("sqs", "TagQueue", QueueUrl=identity, Tags=put)

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        wanted = _attributes({name: value for name, value in new.items() if name in changed})
        if wanted:
            aws.call("sqs", "SetQueueAttributes", QueueUrl=identity, Attributes=wanted)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "DeleteQueue", GONE, timeout, service="sqs", QueueUrl=identity)
        Wait(timeout).until_gone(aws.pace, lambda: None if attributes_of(aws, identity) is None else "there")


class QueuePolicy(Resource):
    token = "aws:sqs/queuePolicy:QueuePolicy"
    noun = "SQS Queue Policy"
    tagged = False
    inputs = (
        Input("queueUrl", required=True, replaces=True),
        Input("policy", required=True, same=same_json, says_wrong=says_wrong_json),
    )

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        url = str(inputs["queueUrl"])
        _put_policy(aws, url, inputs["policy"])
        return url

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        seen = (attributes_of(aws, identity) or {}).get("Policy")
        if not seen:
            return None
        before = known.get("policy")
        return {"queueUrl": identity, "policy": before if same_json(before, seen) else seen}

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if "policy" in changed:
            _put_policy(aws, identity, new["policy"])
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "SetQueueAttributes", GONE, timeout, service="sqs", QueueUrl=identity, Attributes={"Policy": ""})


def attributes_of(aws: Region, url: str) -> Mapping[str, str] | None:
    """What SQS says of a queue; None when it is gone."""
    answer = described(aws, "sqs", "GetQueueAttributes", GONE, QueueUrl=url, AttributeNames=["All"])
    return dict(answer.get("Attributes") or {}) if answer is not None else None


def _attributes(inputs: Properties) -> dict[str, str]:
    given = {theirs: str(int(inputs[ours])) for ours, theirs in _NUMBERS.items() if inputs.get(ours) is not None}
    if inputs.get("sqsManagedSseEnabled") is not None:
        given[_ENCRYPTED] = "true" if inputs["sqsManagedSseEnabled"] else "false"
    return given


def _put_policy(aws: Region, url: str, policy: Value) -> None:
    """A principal that was made a moment ago is no valid one yet."""
    patiently(
        aws.pace,
        _SENDERS_SECONDS,
        lambda error: has_code(error, "InvalidAttributeValue"),
        lambda: aws.call("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": policy}),
    )
