"""Builders for tests of the stand-in provider that need no server."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.sandbox.aws.config import ProviderConfig
from engine.sandbox.aws.performed import PERFORMED
from engine.sandbox.aws.resource import Resource
from engine.sandbox.aws.schema import Difference
from engine.sandbox.aws.session import Region, Session
from engine.sandbox.aws.waiting import Pace
from engine.sandbox.aws.wire import Properties

NOWHERE = "http://127.0.0.1:9"

INSTANCE = "aws:ec2/instance:Instance"
SUBNET = "aws:ec2/subnet:Subnet"
VPC = "aws:ec2/vpc:Vpc"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
ROUTE = "aws:ec2/route:Route"
ROLE = "aws:iam/role:Role"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def a_config(**changes: Any) -> ProviderConfig:
    given = {"region": "us-east-1", "endpoints": {"ec2": NOWHERE}, "access_key": "a", "secret_key": "b", **changes}
    return ProviderConfig(**given)


def a_region(config: ProviderConfig | None = None) -> Region:
    return Session(config or a_config(), Pace(scale=0)).region(None)


def the(token: str) -> Resource:
    return PERFORMED[token]


def checked(token: str, given: Properties, old: Properties | None = None, **config: Any) -> Properties:
    """The inputs after Check; fails when anything is wrong with them."""
    inputs, failures = the(token).check(a_config(**config), "thing", b"seed", old or {}, given)
    assert failures == []
    return inputs


def complaints(token: str, given: Properties) -> dict[str, str]:
    """What Check says is wrong, by property."""
    _, failures = the(token).check(a_config(), "thing", b"seed", {}, given)
    return {failure.property: failure.reason for failure in failures}


def difference(token: str, before: Properties, after: Properties, state: Properties | None = None) -> Difference:
    """What Diff says of two programs' inputs, both checked."""
    old, new = checked(token, before), checked(token, after, before)
    return the(token).diff(a_region(), "id", old, {**old, **(state or {})}, new)


class FakeClient:
    """Answers actions from functions, and keeps the requests; an exception that is answered is raised."""

    def __init__(self, answers: Mapping[str, Callable[..., Any]]) -> None:
        self._answers = answers
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in self._answers:
            raise AttributeError(method)

        def perform(**request: Any) -> Any:
            self.requests.append((method, request))
            answer = self._answers[method](**request)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return perform
