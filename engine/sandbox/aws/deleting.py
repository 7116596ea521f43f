"""Looking for things that may be gone, and deleting things that may be gone or still in use."""

from typing import Any

from engine.sandbox.aws.session import AwsError, Region, has_code
from engine.sandbox.aws.waiting import patiently


def described(aws: Region, service: str, action: str, gone_codes: tuple[str, ...], **request: Any) -> Any:
    """What an action answers about a thing; None when it is not there, or not any more."""
    try:
        return aws.call(service, action, **request)
    except AwsError as error:
        if error.code in gone_codes:
            return None
        raise


def found(aws: Region, action: str, key: str, gone_codes: tuple[str, ...], **request: Any) -> Any:
    """The first thing that a Describe action answers under `key`; None when there is none, or none any more."""
    answer = described(aws, "ec2", action, gone_codes, **request)
    listed = answer[key] if answer is not None else ()
    return listed[0] if listed else None


def delete(
    aws: Region,
    action: str,
    gone_codes: tuple[str, ...],
    timeout: float,
    *,
    while_in_use: tuple[str, ...] = (),
    service: str = "ec2",
    **request: Any,
) -> None:
    """Delete, trying again for `timeout` seconds while AWS says that something still uses the thing.

    A thing that is not there counts as deleted. Raises AwsError with AWS's last answer.
    """
    try:
        patiently(
            aws.pace,
            timeout,
            lambda error: has_code(error, *while_in_use),
            lambda: aws.call(service, action, **request),
        )
    except AwsError as error:
        if error.code not in gone_codes:
            raise
