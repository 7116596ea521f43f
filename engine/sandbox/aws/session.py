"""Calls to AWS: clients shared by all resources of one configuration; retries and errors as in the AWS plugin."""

import random
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from attrs import frozen

from engine.sandbox.aws.config import WHAT_THIS_IS, ProviderConfig
from engine.sandbox.aws.waiting import Pace

POOLED_CONNECTIONS = 100
READ_TIMEOUT_SECONDS = 120

# An endpoint that is not there at all: more attempts would only hide that it is down.
UNREACHABLE_ATTEMPTS = 3

# The n-th retry waits a random time below the first (or the second, when throttled) times 2 to the n; once that
# passes the ceiling, a random time below half of it.
RETRY_SECONDS = 0.03
THROTTLED_RETRY_SECONDS = 0.5
RETRY_CEILING_SECONDS = 300.0

NO_CAPACITY = "InsufficientInstanceCapacity"
THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "EC2ThrottledException",
        "SlowDown",
        "BandwidthLimitExceeded",
    }
)

# How the Go SDK, whose errors the official plugin passes on, calls the services.
_SDK_NAMES = {"ec2": "EC2", "iam": "IAM", "eks": "EKS", "sts": "STS", "sqs": "SQS", "events": "EventBridge"}


class AwsError(Exception):
    """An error that AWS answered, in the Go SDK's words; `code` and `message` are AWS's, verbatim."""

    def __init__(self, service: str, action: str, code: str, message: str, status: int, request_id: str) -> None:
        super().__init__(
            f"operation error {_SDK_NAMES.get(service, service)}: {action}, https response error "
            f"StatusCode: {status}, RequestID: {request_id}, api error {code}: {message}"
        )
        self.code = code
        self.message = message
        self.status = status


class UnreachableError(Exception):
    """There is no endpoint for the service, or it does not answer."""


@cache
def service_descriptions() -> Any:
    """What botocore knows of the services, read once for all configurations: a first client takes 0.2 s of reading."""
    import botocore.loaders

    return botocore.loaders.create_loader()


class Session:
    """One provider configuration at work. Safe to use from many threads."""

    def __init__(self, config: ProviderConfig, pace: Pace, like: "Session | None" = None) -> None:
        """`like` is a session of an equal configuration, whose clients are shared: a client takes 0.2 s to make."""
        self.config = config
        self.pace = pace
        self._lock: threading.RLock = like._lock if like else threading.RLock()
        self._clients: dict[tuple[str, str], Any] = like._clients if like else {}
        self._boto: Any = None
        self._account_id: str | None = None

    @property
    def account_id(self) -> str:
        """Empty when the configuration says not to ask for it, as in the official plugin."""
        with self._lock:
            if self._account_id is None:
                asks = self.config.asks_account_id and "sts" in self.config.endpoints
                answer = self.region(None).call("sts", "GetCallerIdentity") if asks else {}
                self._account_id = str(answer.get("Account", ""))
            return self._account_id

    def region(self, name: str | None) -> "Region":
        """Calls in the region of one resource; in the provider's own when it names none."""
        return Region(self, name or self.config.region)

    def client(self, service: str, region: str) -> Any:
        """The boto3 client, made once. Raises UnreachableError when the provider names no endpoint for it."""
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._new_client(service, region)
            return self._clients[service, region]

    def _new_client(self, service: str, region: str) -> Any:
        # Imported late: the engine waits for the provider's port, and boto3 takes half a second.
        import boto3
        import botocore.session
        from botocore.config import Config

        endpoint = self.config.endpoints.get(service)
        if endpoint is None:
            raise UnreachableError(f"the provider's endpoints name none for {service}, and {WHAT_THIS_IS}")
        if self._boto is None:
            core = botocore.session.Session()
            core.register_component("data_loader", service_descriptions())
            self._boto = boto3.session.Session(
                botocore_session=core,
                aws_access_key_id=self.config.access_key,
                aws_secret_access_key=self.config.secret_key,
                aws_session_token=self.config.token or None,
            )
        # boto3 attempts once: retries are ours, so that they follow the plugin's rules at the sandbox's pace.
        settings = Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=POOLED_CONNECTIONS,
            read_timeout=READ_TIMEOUT_SECONDS,
            proxies={"http": "", "https": ""},
        )
        return self._boto.client(service, region_name=region, endpoint_url=endpoint, config=settings)


@frozen
class Region:
    """AWS in one region, through one session."""

    session: Session
    name: str

    @property
    def pace(self) -> Pace:
        return self.session.pace

    def ec2(self, action: str, **request: Any) -> Any:
        return self.call("ec2", action, **request)

    def iam(self, action: str, **request: Any) -> Any:
        return self.call("iam", action, **request)

    def arn(self, service: str, rest: str, account_id: str | None = None) -> str:
        account = self.session.account_id if account_id is None else account_id
        return f"arn:aws:{service}:{self.name}:{account}:{rest}"

    def call(self, service: str, action: str, **request: Any) -> Any:
        """Perform an action, retried as the official plugin retries it; arguments that are None are left out.

        Raises AwsError with AWS's answer, UnreachableError when there is none, WaitError when cancelled.
        """
        from botocore import xform_name
        from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

        perform = getattr(self.session.client(service, self.name), xform_name(action))
        given = {key: value for key, value in request.items() if value is not None}
        retried = 0
        while True:
            try:
                return perform(**given)
            except ClientError as error:
                failure = _aws_error(service, action, error.response)
                if retried >= self.session.config.max_retries or not is_retried(action, failure):
                    raise failure from error
                throttled = failure.code in THROTTLED
            except ParamValidationError as error:
                raise AwsError(service, action, "ValidationException", str(error), 400, "") from error
            except BotoCoreError as error:
                if retried + 1 >= UNREACHABLE_ATTEMPTS:
                    raise UnreachableError(f"operation error {service}: {action}, {error}") from error
                throttled = False
            self.pace.pause(_retry_seconds(retried, throttled))
            retried += 1


def has_code(error: Exception, *codes: str) -> bool:
    """Whether AWS answered one of these codes, as against anything else that can go wrong."""
    return isinstance(error, AwsError) and error.code in codes


def is_retried(action: str, error: AwsError) -> bool:
    """The SDK's own rule, and the one that the plugin adds for RunInstances."""
    if error.code == NO_CAPACITY:
        return action == "RunInstances"
    return error.code in THROTTLED or error.status in (500, 502, 503, 504)


def _retry_seconds(retried: int, throttled: bool) -> float:
    below = (THROTTLED_RETRY_SECONDS if throttled else RETRY_SECONDS) * 2**retried
    return random.uniform(0, below if below <= RETRY_CEILING_SECONDS else RETRY_CEILING_SECONDS / 2)


def _aws_error(service: str, action: str, response: Mapping[str, Any]) -> AwsError:
    error = response.get("Error", {})
    metadata = response.get("ResponseMetadata", {})
    return AwsError(
        service,
        action,
        str(error.get("Code", "Unknown")),
        str(error.get("Message", "")),
        int(metadata.get("HTTPStatusCode", 0)),
        str(metadata.get("RequestId", "")),
    )
