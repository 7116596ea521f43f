"""Clients of AWS services, and what their errors mean to a person."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from engine.observe.failure import ObservationFailed

_CONNECT_SECONDS = 3
_READ_SECONDS = 10
_ATTEMPTS = 3
_NO_CREDENTIALS_NEEDED = "sandbox"
_SIGNED_WRONGLY = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_READ_BY = {
    "EC2": "AmazonEC2ReadOnlyAccess has it",
    "SSM": "AmazonSSMReadOnlyAccess has it",
    "SQS": "sqs:GetQueueUrl, sqs:ReceiveMessage and sqs:DeleteMessage on the queue",
}
_NO_SUCH_QUEUE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_NOT_PERMITTED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})


def is_loopback(endpoint_url: str | None) -> bool:
    """Whether an endpoint is on this machine, so that it is an emulator and no account."""
    host = urlsplit(endpoint_url or "").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def aws_client(service: str, endpoint_url: str | None, region: str, read_seconds: int = _READ_SECONDS) -> Any:
    """A boto3 client that gives up within seconds; an emulator on loopback is never shown real credentials.

    ``read_seconds`` is how long it waits for an answer: longer than the service may take its time.
    """
    from botocore.config import Config

    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        # Loopback is never behind a proxy.
        proxies={} if is_loopback(endpoint_url) else None,
    )
    keys = {}
    if is_loopback(endpoint_url):
        keys = {"aws_access_key_id": _NO_CREDENTIALS_NEEDED, "aws_secret_access_key": _NO_CREDENTIALS_NEEDED}
    with told_as_observation(service, endpoint_url, region, "its client"):
        return _session().client(
            service,
            region_name=region,
            endpoint_url=endpoint_url,
            config=config,
            **keys,
        )


@cache
def _session() -> Any:
    """One for all clients: it keeps the services' descriptions, which take half a second to read."""
    import boto3

    return boto3.session.Session()


@contextmanager
def told_as_observation(service: str, endpoint_url: str | None, region: str, what: str) -> Iterator[None]:
    """Errors of the AWS client inside this block become ObservationFailed; ``what`` says what was being read."""
    from botocore import exceptions as aws

    endpoint = endpoint_url or f"{service}.{region}.amazonaws.com"
    name = service.upper()
    try:
        yield
    except aws.ClientError as error:
        raise _refused(name, endpoint, what, error.response.get("Error", {})) from None
    except (aws.ConnectionError, aws.HTTPClientError) as error:
        raise _unreachable(name, endpoint, endpoint_url, what, str(error)) from None
    except aws.NoCredentialsError:
        raise ObservationFailed(
            f"{name} at {endpoint} cannot be asked for {what}: there are no AWS credentials",
            "sign in (`aws sso login`) or set AWS_PROFILE; `aws sts get-caller-identity` shows who you are",
        ) from None
    except (aws.BotoCoreError, ValueError) as error:
        raise ObservationFailed(
            f"{name} at {endpoint} cannot be asked for {what}: {error}",
            "check region and endpoint in the stack file, and the AWS profile",
        ) from None


def _unreachable(name: str, endpoint: str, endpoint_url: str | None, what: str, why: str) -> ObservationFailed:
    hint = (
        "if it is the sandbox's, `nodewright up` starts it; else start the emulator that the stack file names"
        if is_loopback(endpoint_url)
        else "check the network, and region and endpoint in the stack file"
    )
    return ObservationFailed(f"{name} at {endpoint} gave no answer to {what}: {why}", hint)


def _refused(name: str, endpoint: str, what: str, error: Any) -> ObservationFailed:
    code, message = str(error.get("Code", "")), str(error.get("Message", ""))
    if code in _SIGNED_WRONGLY:
        hint = "the AWS credentials are wrong or have expired: sign in again, then `aws sts get-caller-identity`"
    elif code in _NOT_PERMITTED:
        policy = f" ({_READ_BY[name]})" if name in _READ_BY else ""
        hint = f"give the identity that runs this the permission to read {what}{policy}"
    elif code in _NO_SUCH_QUEUE:
        hint = (
            "make the queue and the rules that feed it (docs/interruptions.md), or correct nodewright:interruptionQueue"
        )
    else:
        hint = "run it again; if it stays, the message above is AWS's own"
    return ObservationFailed(f"{name} at {endpoint} refused {what} with {code}: {message}", hint)
