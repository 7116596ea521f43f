"""Reading EC2: this environment's instances, and what node classes' selectors match."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from engine.model import labels as keys
from engine.model.document import DesiredDocument
from engine.model.environment import Environment, NetworkMode
from engine.model.ledger import Ledger
from engine.model.node import Instance, InstanceState
from engine.model.policy import Policy
from engine.model.reservation import CapacityReservation
from engine.model.snapshot import CloudFacts
from engine.observe.aws_client import aws_client, told_as_observation
from engine.observe.ec2_clock import Ec2Clock
from engine.observe.ec2_images import DEFAULT_KUBERNETES_VERSION, images_of
from engine.observe.ec2_network import security_group_ids_of, subnets_of
from engine.observe.ec2_reservations import reservations_of
from engine.observe.failure import ObservationFailed

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef

# EC2 answers for a while after a launch as if the instance did not exist (eventual consistency).
NOT_FOUND_GRACE = timedelta(seconds=60)
_IDS_A_CALL = 200
# EC2 takes at most this many values in one filter.
_NAMES_A_CALL = 200
_INSTANCE_ID = re.compile(r"i-[0-9a-f]+")
_NOT_FOUND = "InvalidInstanceID.NotFound"
_MALFORMED = "InvalidInstanceID.Malformed"


class Ec2Reader:
    """EC2 of one region; ``endpoint_url`` None is AWS itself, a loopback address an emulator."""

    def __init__(
        self,
        endpoint_url: str | None,
        region: str,
        kubernetes_version: str = DEFAULT_KUBERNETES_VERSION,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._endpoint_url = endpoint_url
        self._region = region
        self._kubernetes_version = kubernetes_version
        self._clock = Ec2Clock(now)
        self._clients: dict[str, Any] = {}

    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts:
        """Everything a decision needs of EC2; raises ObservationFailed when any part of it cannot be had.

        A node class whose selectors match nothing is in the answer, with nothing: an empty tuple of subnets or
        groups, or no image.
        """
        with self._asking("the instances of this environment"):
            instances = tuple(self._instances(environment.name))
        is_existing = environment.network.mode is NetworkMode.EXISTING
        network_stands = is_existing or document is None or self._owned_network_stands(environment.name)
        absent = tuple(self._absent_claims(document, ledger, instances, network_stands=network_stands))
        classes = sorted(policy.node_classes, key=lambda each: each.name)
        subnets, groups = {}, {}
        if is_existing:
            with self._asking("subnets and security groups"):
                subnets = {each.name: subnets_of(self._ec2, each) for each in classes}
                groups = {each.name: security_group_ids_of(self._ec2, each) for each in classes}
        with self._asking("images"):
            images = images_of(self._ec2, self._ssm, classes, self._kubernetes_version)
        return CloudFacts(
            clock_ahead=self._clock.ahead,
            network_stands=network_stands,
            instances=instances,
            absent_claims=absent,
            subnets=subnets,
            security_group_ids=groups,
            images=images,
            reservations=self._reservations(policy),
        )

    def read_claims(self, environment: Environment, names: Collection[str]) -> tuple[Instance, ...]:
        """The instances, alive or not, that carry one of these claims' names, in id order; one short call.

        Raises ObservationFailed.
        """
        waiting = sorted(set(names))
        found: list[Instance] = []
        with self._asking("the instances of new claims"):
            while waiting:
                asked, waiting = waiting[:_NAMES_A_CALL], waiting[_NAMES_A_CALL:]
                found += self._instances(environment.name, {"Name": f"tag:{keys.TAG_CLAIM}", "Values": asked})
        return tuple(sorted(found, key=lambda each: each.id))

    def _reservations(self, policy: Policy) -> tuple[CapacityReservation, ...]:
        """Read after the instances: a launch in between is then counted twice, and not left out.

        Where no class selects any, only the plan's word on idle ones hangs on them: no answer is then taken for none.
        """
        try:
            with self._asking("capacity reservations"):
                return reservations_of(self._ec2)
        except ObservationFailed:
            if any(each.capacity_reservation_selector_terms for each in policy.node_classes):
                raise
            return ()

    def _instances(self, environment: str, *more: FilterTypeDef) -> Iterator[Instance]:
        of_environment: FilterTypeDef = {"Name": f"tag:{keys.TAG_ENVIRONMENT}", "Values": [environment]}
        pages = self._ec2.get_paginator("describe_instances").paginate(Filters=[of_environment, *more])
        described = (
            raw
            for page in self._dated(pages)
            for reservation in page["Reservations"]
            for raw in reservation["Instances"]
        )
        yield from sorted(map(_instance, described), key=lambda each: each.id)

    def _dated(self, pages: Iterable[Any]) -> Iterator[Any]:
        """The pages, each held against this machine's clock as it comes."""
        asked_at = self._clock.own()
        for page in pages:
            self._clock.learn(page, asked_at)
            yield page
            asked_at = self._clock.own()

    def _owned_network_stands(self, environment: str) -> bool:
        with self._asking("the VPC of this environment"):
            vpcs = self._ec2.describe_vpcs(Filters=[{"Name": f"tag:{keys.TAG_ENVIRONMENT}", "Values": [environment]}])
        return bool(vpcs["Vpcs"])

    def _absent_claims(
        self,
        document: DesiredDocument | None,
        ledger: Ledger,
        instances: tuple[Instance, ...],
        *,
        network_stands: bool,
    ) -> Iterator[str]:
        """Claims whose instance is gone for certain: EC2 shows it terminated, or knows no such id, when asked.

        An id that EC2 does not know may be a launch that it has yet to show; not so when the whole network is gone.
        """
        claims = sorted(document.claims, key=lambda each: each.name) if document is not None else []
        states = {instance.id: instance.state for instance in instances}
        alive = {instance.claim for instance in instances if instance.state is not InstanceState.TERMINATED}
        terminated = {instance.claim for instance in instances if instance.state is InstanceState.TERMINATED}
        unlisted = {
            claim.name: ledger.instance_ids[claim.name]
            for claim in claims
            if claim.name in ledger.instance_ids and ledger.instance_ids[claim.name] not in states
        }
        known = self._states_by_id(unlisted.values())
        for claim in claims:
            if claim.name in alive:
                continue
            if claim.name in terminated:
                yield claim.name
            elif claim.name in unlisted:
                state = known.get(unlisted[claim.name])
                is_settled = not network_stands or self._clock.now() - claim.created_at >= NOT_FOUND_GRACE
                if state == InstanceState.TERMINATED.value or (state == _NOT_FOUND and is_settled):
                    yield claim.name

    def _states_by_id(self, instance_ids: Iterable[str]) -> Mapping[str, str]:
        """The state of each id, or EC2's error code for it."""
        from botocore.exceptions import ClientError

        states: dict[str, str] = {}
        waiting = sorted(set(instance_ids))
        while waiting:
            asked, rest = waiting[:_IDS_A_CALL], waiting[_IDS_A_CALL:]
            try:
                states.update(self._described_states(asked))
            except ClientError as error:
                refused = _refused_ids(error, asked)
                if not refused:
                    # Not about any one id: the read as a whole has failed.
                    with self._asking("instances by their ids"):
                        raise
                states.update(refused)
            # One unknown id fails the call for all of them, so those that were not named are asked again.
            waiting = [each for each in asked if each not in states] + rest
        return states

    def _described_states(self, instance_ids: list[str]) -> Mapping[str, str]:
        answer = self._ec2.describe_instances(InstanceIds=instance_ids)
        found: dict[str, str] = dict.fromkeys(instance_ids, "unlisted")
        for reservation in answer["Reservations"]:
            for raw in reservation["Instances"]:
                found[raw["InstanceId"]] = raw["State"]["Name"]
        return found

    def _asking(self, what: str) -> AbstractContextManager[None]:
        return told_as_observation("ec2", self._endpoint_url, self._region, what)

    @property
    def _ec2(self) -> EC2Client:
        client: EC2Client = self._client("ec2")
        return client

    def _ssm(self) -> Any:
        return self._client("ssm")

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = aws_client(service, self._endpoint_url, self._region)
        return self._clients[service]


def _refused_ids(error: Any, asked: list[str]) -> Mapping[str, str]:
    """The ids that EC2's error is about, with its code; empty when it is about none of them."""
    told = error.response.get("Error", {})
    code = told.get("Code", "")
    if code not in (_NOT_FOUND, _MALFORMED):
        return {}
    named = set(_INSTANCE_ID.findall(told.get("Message", ""))) & set(asked)
    if not named and len(asked) == 1:
        named = set(asked)
    return dict.fromkeys(named, code)


def _instance(raw: Any) -> Instance:
    tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])}
    return Instance(
        id=raw["InstanceId"],
        claim=tags.get(keys.TAG_CLAIM, ""),
        state=InstanceState(raw["State"]["Name"]),
        instance_type=raw["InstanceType"],
        zone=raw["Placement"]["AvailabilityZone"],
        capacity_type=_capacity_type(raw),
        launched_at=raw["LaunchTime"],
        private_dns_name=raw.get("PrivateDnsName", ""),
    )


def _capacity_type(raw: Any) -> str:
    lifecycle = raw.get("InstanceLifecycle")
    if lifecycle == "spot":
        return keys.SPOT
    # An instance may also run in an open reservation that nobody aimed at: that is on-demand.
    aimed = raw.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget")
    return keys.RESERVED if lifecycle == "capacity-block" or aimed else keys.ON_DEMAND
