"""Tags: defaults merged under a resource's own, and which of the cloud's are ours to manage."""

from collections.abc import Mapping
from typing import Any

from engine.sandbox.aws.config import ProviderConfig
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.wire import UNKNOWN, Value, has_unknown

SYSTEM_PREFIX = "aws:"

Tags = dict[str, str]


def effective_tags(config: ProviderConfig, tags: Value) -> Value:
    """What a resource is to carry (`tagsAll`): unknown as a whole while any of its own tags is."""
    if has_unknown(tags):
        return UNKNOWN
    return _managed(config, {**config.default_tags, **(tags or {})})


def remote_tags(config: ProviderConfig, remote: Any) -> Tags:
    """The cloud's list of Key and Value as a map, without system tags and without those that are ignored."""
    listed = remote if isinstance(remote, Mapping) else {tag["Key"]: tag["Value"] for tag in remote or ()}
    return _managed(config, listed)


def own_tags(config: ProviderConfig, remote: Tags, known: Mapping[str, str]) -> Tags:
    """The cloud's tags less those that are there only because the provider adds them by default."""
    return {key: value for key, value in remote.items() if key in known or config.default_tags.get(key) != value}


def tag_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def tag_specifications(kind: str, tags: Mapping[str, str] | None) -> list[dict[str, Any]] | None:
    """Tags for an EC2 create call, so that nothing exists untagged; None for no tags."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)}] if tags else None


def changed_tags(old: Mapping[str, str] | None, new: Mapping[str, str]) -> tuple[list[str], Tags]:
    """The keys that go, and the tags to put, between what a thing carries and what it is to carry."""
    before = old or {}
    return sorted(before.keys() - new.keys()), {key: value for key, value in new.items() if before.get(key) != value}


def change_ec2_tags(aws: Region, identity: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Bring an EC2 thing's tags from old to new: deletions first."""
    gone, put = changed_tags(old, new)
    if gone:
        aws.ec2("DeleteTags", Resources=[identity], Tags=tag_list({key: old[key] for key in gone}))
    if put:
        aws.ec2("CreateTags", Resources=[identity], Tags=tag_list(put))


def _managed(config: ProviderConfig, tags: Mapping[str, str]) -> Tags:
    return {
        key: value
        for key, value in tags.items()
        if not key.startswith((SYSTEM_PREFIX, *config.ignored_prefixes)) and key not in config.ignored_keys
    }
