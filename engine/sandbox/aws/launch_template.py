"""aws:ec2/launchTemplate:LaunchTemplate"""

import uuid
from typing import Any

from engine.sandbox.aws.deleting import delete, found
from engine.sandbox.aws.launch_template_data import DATA_INPUTS, known_data, request_data
from engine.sandbox.aws.resource import Named, Resource, unique_name
from engine.sandbox.aws.schema import Input, Rules, equal_as_sets
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.waiting import Wait
from engine.sandbox.aws.wire import Properties, Value

LONGEST_NAME = 125
SHORTEST_NAME = 3
LONGEST_HOP_LIMIT = 64

_GONE = (
    "InvalidLaunchTemplateId.NotFound",
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.VersionNotFound",
)

# Found three times running, since EC2 may forget a new template for a moment.
READY = Wait(timeout_seconds=20 * 60.0, delay_seconds=5, misses=5)

_NOT_DATA = frozenset({"name", "namePrefix", "description", "defaultVersion", "updateDefaultVersion"})

# Not in the plugin's list of changes that make a version.
_MAKES_NO_VERSION = frozenset({"maintenanceOptions"})


def says_wrong_name(name: Value) -> str:
    fits = SHORTEST_NAME <= len(str(name)) <= LONGEST_NAME
    return "" if fits else f"expected {SHORTEST_NAME} to {LONGEST_NAME} characters"


def says_wrong_metadata(options: Value) -> str:
    hops = options.get("httpPutResponseHopLimit")
    return (
        ""
        if hops is None or 1 <= hops <= LONGEST_HOP_LIMIT
        else f"httpPutResponseHopLimit: expected 1 to 64, got {hops}"
    )


class LaunchTemplate(Resource):
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    noun = "EC2 Launch Template"
    named = Named(LONGEST_NAME)
    inputs = (
        Input("name", computed=True, replaces=True, says_wrong=says_wrong_name),
        Input("namePrefix", computed=True, replaces=True),
        Input("description"),
        Input("defaultVersion", computed=True),
        Input("updateDefaultVersion"),
        *(
            Input(name)
            for name in DATA_INPUTS
            if name not in ("metadataOptions", "vpcSecurityGroupIds", "securityGroupNames")
        ),
        Input("metadataOptions", computed=True, says_wrong=says_wrong_metadata),
        Input("vpcSecurityGroupIds", same=equal_as_sets),
        Input("securityGroupNames", same=equal_as_sets),
        Input("secondaryInterfaces", performed=False),
    )
    outputs = ("arn", "latestVersion", "tagsAll")
    rules = Rules(
        exclusive=(
            ("name", "namePrefix"),
            ("defaultVersion", "updateDefaultVersion"),
            ("instanceType", "instanceRequirements"),
            ("vpcSecurityGroupIds", "securityGroupNames"),
        )
    )

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        name = inputs.get("name") or unique_name(inputs["namePrefix"])
        answer = aws.ec2(
            "CreateLaunchTemplate",
            LaunchTemplateName=name,
            LaunchTemplateData=request_data(inputs),
            VersionDescription=inputs.get("description"),
            ClientToken=str(uuid.uuid4()),
            TagSpecifications=tag_specifications("launch-template", inputs.get("tagsAll")),
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        READY.until_found(aws.pace, lambda: _found(aws, identity), times=3)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        template = find_template(aws, identity)
        if template is None:
            return None
        latest = int(template["LatestVersionNumber"])
        version = find_version(aws, identity, str(latest)) or {}
        return {
            "arn": aws.arn("ec2", f"launch-template/{identity}"),
            "name": template["LaunchTemplateName"],
            "latestVersion": latest,
            "defaultVersion": int(template["DefaultVersionNumber"]),
            "description": version.get("VersionDescription") or known.get("description"),
            "tagsAll": remote_tags(aws.session.config, template.get("Tags")),
            **known_data(version.get("LaunchTemplateData") or {}, known),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        newest = None
        if changed & {"description", *DATA_INPUTS} - _MAKES_NO_VERSION:
            answer = aws.ec2(
                "CreateLaunchTemplateVersion",
                LaunchTemplateId=identity,
                LaunchTemplateData=request_data(new),
                VersionDescription=new.get("description"),
                ClientToken=str(uuid.uuid4()),
            )
            newest = int(answer["LaunchTemplateVersion"]["VersionNumber"])
        default = _default_version(new, changed, newest, old.get("latestVersion"))
        if default is not None:
            aws.ec2("ModifyLaunchTemplate", LaunchTemplateId=identity, DefaultVersion=str(default))
        READY.until_found(aws.pace, lambda: _found(aws, identity), times=3)
        return identity

    def unknown_after(self, changed: frozenset[str], state: Properties) -> set[str]:
        unknown = {"latestVersion"} if changed - _NOT_DATA else set()
        if state.get("updateDefaultVersion") and changed - {"name", "namePrefix", "description"}:
            unknown.add("defaultVersion")
        return unknown

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "DeleteLaunchTemplate", _GONE, timeout, LaunchTemplateId=identity)


def find_template(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeLaunchTemplates", "LaunchTemplates", _GONE, LaunchTemplateIds=[identity])


def find_version(aws: Region, identity: str, version: str) -> Any:
    """One version of a template, by number or as `$Latest` or `$Default`."""
    return found(
        aws,
        "DescribeLaunchTemplateVersions",
        "LaunchTemplateVersions",
        _GONE,
        LaunchTemplateId=identity,
        Versions=[version],
    )


def _default_version(new: Properties, changed: frozenset[str], newest: int | None, latest_before: Value) -> int | None:
    """The version to make the default one, if that is to change."""
    if new.get("updateDefaultVersion"):
        switched_on = "updateDefaultVersion" in changed
        return newest if newest is not None else (latest_before if switched_on else None)
    return new.get("defaultVersion") if "defaultVersion" in changed else None


def _found(aws: Region, identity: str) -> str | None:
    return None if find_template(aws, identity) is None else "found"
