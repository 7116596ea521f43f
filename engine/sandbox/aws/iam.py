"""What the IAM resource types share."""

from typing import Any

from engine.sandbox.aws.deleting import described
from engine.sandbox.aws.session import AwsError, Region

NO_SUCH_ENTITY = ("NoSuchEntity",)


def find(aws: Region, action: str, key: str, **request: Any) -> Any:
    """What a Get action answers under `key`; None for an entity that does not exist."""
    answer = described(aws, "iam", action, NO_SUCH_ENTITY, **request)
    return answer[key] if answer is not None else None


def pages(aws: Region, action: str, key: str, **request: Any) -> list[Any]:
    """All that a List action answers under `key`; nothing for an entity that does not exist."""
    listed: list[Any] = []
    marker = None
    while True:
        try:
            answer = aws.iam(action, Marker=marker, **request)
        except AwsError as error:
            if error.code in NO_SUCH_ENTITY:
                return listed
            raise
        listed += answer[key]
        if not answer.get("IsTruncated"):
            return listed
        marker = answer["Marker"]


def principal_is_not_there_yet(error: Exception) -> bool:
    """IAM needs some seconds before a new principal may be named in a policy."""
    if not isinstance(error, AwsError):
        return False
    invalid = error.code == "MalformedPolicyDocument" and "Invalid principal in policy" in error.message
    return invalid or error.code == "ConcurrentModification"
