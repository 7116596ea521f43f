"""The sandbox's capacity reservations, which moto has not: a file names them, and launches that aim at them fill them.

They are read from a JSON file, `{"reservations": [...]}`, at every question:

    {"id": "cr-0a1", "instance_type": "p5.4xlarge", "zone": "us-east-1a", "total": 4, "kind": "capacity-block",
     "match": "targeted", "owner_id": "123456789012", "ends_at": "2026-12-24T11:30:00Z", "tags": {"team": "search"}}

The first four are needed. An open reservation is filled only by launches that name it: no others fall into it here.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from attrs import asdict, field, frozen

from engine.sandbox.faults import Refusal

TARGET = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
_INSTANCE_ID = re.compile(rb"<instanceId>(i-[0-9a-f]+)</instanceId>")


@frozen
class SandboxReservation:
    """One entry of the file."""

    id: str
    instance_type: str
    zone: str
    total: int
    kind: str = "default"
    match: str = "targeted"
    owner_id: str = "123456789012"
    ends_at: str = ""
    tags: Mapping[str, str] = field(factory=dict)


def write_reservations(file: Path, reservations: tuple[SandboxReservation, ...]) -> None:
    """Replace the file in one step."""
    unfinished = file.with_name(file.name + ".part")
    unfinished.write_text(json.dumps({"reservations": [asdict(each) for each in reservations]}), encoding="utf-8")
    unfinished.rename(file)


class ReservationBook:
    """What the file names, and which instances were launched in what. `alive` tells whether an instance still runs."""

    def __init__(self, file: Path, alive: Callable[[str], bool]) -> None:
        self._file = file
        self._alive = alive
        self._launched: dict[str, list[str]] = {}

    def refusal(self, form: Mapping[str, str]) -> Refusal | None:
        """EC2's answer to a RunInstances that aims at a reservation which is not there, or is of no use to it."""
        target = form.get(TARGET)
        if not target:
            return None
        named = {each.id: each for each in self._named()}.get(target)
        if named is None:
            return Refusal("InvalidCapacityReservationId.NotFound", f"The id '{target}' does not exist", 400)
        if form.get("InstanceType", named.instance_type) != named.instance_type or not self._available(named):
            message = "The requested reservation does not have sufficient compatible and available capacity"
            return Refusal("ReservationCapacityExceeded", message, 400)
        return None

    def note(self, form: Mapping[str, str], answer: bytes) -> None:
        """Counts the instances that a RunInstances gave."""
        target = form.get(TARGET)
        if target:
            self._launched.setdefault(target, []).extend(found.decode() for found in _INSTANCE_ID.findall(answer))

    def described(self) -> bytes:
        """The answer to DescribeCapacityReservations: all of them, whatever was filtered for."""
        items = "".join(self._item(each) for each in self._named())
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<DescribeCapacityReservationsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<requestId>{uuid.uuid4()}</requestId><capacityReservationSet>{items}</capacityReservationSet>"
            "</DescribeCapacityReservationsResponse>"
        ).encode()

    def _named(self) -> tuple[SandboxReservation, ...]:
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ()
        return tuple(SandboxReservation(**entry) for entry in document["reservations"])

    def _available(self, reservation: SandboxReservation) -> int:
        running = sum(map(self._alive, self._launched.get(reservation.id, ())))
        return max(0, reservation.total - running)

    def _item(self, each: SandboxReservation) -> str:
        facts = {
            "capacityReservationId": each.id,
            "ownerId": each.owner_id,
            "instanceType": each.instance_type,
            "instancePlatform": "Linux/UNIX",
            "availabilityZone": each.zone,
            "tenancy": "default",
            "totalInstanceCount": str(each.total),
            "availableInstanceCount": str(self._available(each)),
            "state": "active",
            "reservationType": each.kind,
            "instanceMatchCriteria": each.match,
            "endDateType": "limited" if each.ends_at else "unlimited",
            **({"endDate": each.ends_at} if each.ends_at else {}),
        }
        tags = "".join(
            f"<item><key>{escape(key)}</key><value>{escape(value)}</value></item>" for key, value in each.tags.items()
        )
        told = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in facts.items())
        return f"<item>{told}<tagSet>{tags}</tagSet></item>"
