"""aws:cloudwatch/eventRule:EventRule and aws:cloudwatch/eventTarget:EventTarget, on the default event bus."""

from collections.abc import Mapping
from typing import Any

from engine.sandbox.aws.deleting import delete, described
from engine.sandbox.aws.resource import MINUTE_SECONDS, Named, Resource, unique_name
from engine.sandbox.aws.role import same_json, says_wrong_json
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import AwsError, Region
from engine.sandbox.aws.tagging import changed_tags, remote_tags, tag_list
from engine.sandbox.aws.wire import Properties, Value

LONGEST_NAME = 64
DEFAULT_BUS = "default"
_GONE = ("ResourceNotFoundException",)


def says_wrong_bus(value: Value) -> str:
    return (
        "" if value == DEFAULT_BUS else f"({value}): nodewright's stand-in for the AWS plugin has the default bus only"
    )


class EventRule(Resource):
    token = "aws:cloudwatch/eventRule:EventRule"
    noun = "EventBridge Rule"
    named = Named(LONGEST_NAME)
    delete_seconds = 5 * MINUTE_SECONDS
    inputs = (
        Input("name", computed=True, replaces=True),
        Input("namePrefix", computed=True, replaces=True),
        Input("eventPattern", same=same_json, says_wrong=says_wrong_json),
        Input("description"),
        Input("eventBusName", replaces=True, default=DEFAULT_BUS, says_wrong=says_wrong_bus),
        Input("state", default="ENABLED"),
        Input("forceDestroy", default=False),
        Input("isEnabled", performed=False),
        Input("roleArn", performed=False),
        Input("scheduleExpression", performed=False),
    )
    outputs = ("arn", "tagsAll")
    rules = Rules(exclusive=(("name", "namePrefix"),), at_least_one=(("eventPattern", "scheduleExpression"),))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        name = inputs.get("name") or unique_name(inputs["namePrefix"])
        _put(aws, name, inputs, Tags=tag_list(inputs.get("tagsAll")) or None)
        return str(name)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        rule = described(aws, "events", "DescribeRule", _GONE, Name=identity)
        if rule is None:
            return None
        before, pattern = known.get("eventPattern"), rule.get("EventPattern")
        tags = aws.call("events", "ListTagsForResource", ResourceARN=rule["Arn"]).get("Tags")
        return {
            "arn": rule["Arn"],
            "name": rule["Name"],
            "description": rule.get("Description") or None,
            "eventBusName": rule.get("EventBusName") or DEFAULT_BUS,
            "eventPattern": before if same_json(before, pattern) else pattern,
            "state": rule.get("State"),
            "tagsAll": remote_tags(aws.session.config, tags),
        }

    def retag(self, aws: Region, identity: str, known: Properties, new: Mapping[str, str]) -> None:
        gone, put = changed_tags(known.get("tagsAll"), new)
        arn = known["arn"]
        if gone:
            aws.call("events", "UntagResource", ResourceARN=arn, TagKeys=gone)
        if put:
            aws.call("events", "TagResource", ResourceARN=arn, Tags=tag_list(put))

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if changed & {"eventPattern", "description", "state"}:
            _put(aws, identity, new)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "DeleteRule", _GONE, timeout, service="events", Name=identity)


class EventTarget(Resource):
    token = "aws:cloudwatch/eventTarget:EventTarget"
    noun = "EventBridge Target"
    tagged = False
    inputs = (
        Input("rule", required=True, replaces=True),
        Input("arn", required=True),
        Input("targetId", computed=True, replaces=True),
        Input("eventBusName", replaces=True, default=DEFAULT_BUS, says_wrong=says_wrong_bus),
        Input("forceDestroy", default=False),
        *(
            Input(name, performed=False)
            for name in (
                "appsyncTarget",
                "batchTarget",
                "deadLetterConfig",
                "ecsTarget",
                "httpTarget",
                "input",
                "inputPath",
                "inputTransformer",
                "kinesisTarget",
                "redshiftTarget",
                "retryPolicy",
                "roleArn",
                "runCommandTargets",
                "sagemakerPipelineTarget",
                "sqsTarget",
            )
        ),
    )

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        rule, target = str(inputs["rule"]), str(inputs.get("targetId") or unique_name("terraform-"))
        _aim(aws, rule, target, inputs["arn"])
        return f"{rule}-{target}"

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        rule = str(known["rule"])
        answer = described(aws, "events", "ListTargetsByRule", _GONE, Rule=rule)
        targets: list[Any] = answer["Targets"] if answer is not None else []
        found = next((one for one in targets if f"{rule}-{one['Id']}" == identity), None)
        if found is None:
            return None
        return {"rule": rule, "arn": found["Arn"], "targetId": found["Id"], "eventBusName": DEFAULT_BUS}

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if "arn" in changed:
            _aim(aws, str(old["rule"]), str(old["targetId"]), new["arn"])
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "RemoveTargets", _GONE, timeout, service="events", Rule=known["rule"], Ids=[str(known["targetId"])])


def _put(aws: Region, name: str, inputs: Properties, **more: Any) -> None:
    aws.call(
        "events",
        "PutRule",
        Name=name,
        EventPattern=inputs.get("eventPattern"),
        Description=inputs.get("description"),
        State=inputs["state"],
        **more,
    )


def _aim(aws: Region, rule: str, target: str, arn: Value) -> None:
    answer = aws.call("events", "PutTargets", Rule=rule, Targets=[{"Id": target, "Arn": arn}])
    for refused in answer.get("FailedEntries") or ():
        raise AwsError("events", "PutTargets", refused["ErrorCode"], refused["ErrorMessage"], 400, "")
