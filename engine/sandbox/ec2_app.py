"""What the sandbox adds in front of moto's EC2: the parts of AWS's behaviour that moto has not.

Client tokens that are honoured, instance types that must exist, the EKS image parameters, capacity reservations,
injected faults, a log of what was asked, and when each launch was asked for (`GET /nodewright/launches`). Everything
else goes to moto, one request at a time, since its tables are not made for threads.
"""

import hashlib
import io
import json
import os
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from attrs import asdict, frozen

from engine.model import labels
from engine.sandbox.boot_time import Booting, launch_seconds
from engine.sandbox.faults import Call, Effects, FaultBook, FaultFileError, Refusal
from engine.sandbox.reservations import ReservationBook

BOOT_PATH = "/_nodewright/boot"
LAUNCHES_PATH = "/nodewright/launches"

DATA = Path(__file__).with_name("data")

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@frozen
class Answer:
    """A finished HTTP answer."""

    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def error_code(self) -> str:
        """AWS's error code, empty when the call succeeded."""
        if self.status.startswith("2"):
            return ""
        found = re.search(rb"<Code>([^<]+)</Code>", self.body)
        return found[1].decode() if found else self.status


@frozen
class Request:
    """One call to an AWS service: `form` is empty for services that speak JSON."""

    service: str
    region: str
    action: str
    form: Mapping[str, str]
    body: bytes


class RequestLog:
    """The actions received, one JSON line each, for tests and for people who wonder."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._file = file.open("a", encoding="utf-8")

    def write(self, request: Request, call: Call, error_code: str) -> None:
        line = {
            "time": round(time.time(), 3),
            "service": request.service,
            "action": request.action,
            "instance_type": call.instance_type,
            "zone": call.zone,
            "capacity_type": call.capacity_type,
            "error": error_code,
        }
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


@frozen
class ReceivedLaunch:
    """One RunInstances request: its claim tag, empty without one, and when it came, in seconds of the wall clock."""

    claim: str
    received_at: float


class LaunchTimes:
    """Every RunInstances request since the server started, in the order received, whatever became of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._received: list[ReceivedLaunch] = []

    def note(self, request: Request, received_at: float) -> None:
        launch = ReceivedLaunch(tag_of(request.form, labels.TAG_CLAIM), received_at)
        with self._lock:
            self._received.append(launch)

    def told(self) -> Answer:
        with self._lock:
            return json_answer([asdict(one) for one in self._received])


class Ec2Application:
    """The WSGI application: `moto` behind the sandbox's additions."""

    def __init__(
        self, moto: Wsgi, boot_id: str, faults: FaultBook, log: RequestLog, reservations: ReservationBook
    ) -> None:
        self._moto = moto
        self._boot_id = boot_id
        self._faults = faults
        self._log = log
        self._reservations = reservations
        self._one_at_a_time = threading.Lock()
        self._launched: dict[str, tuple[str, Answer]] = {}
        self._launch_times = LaunchTimes()
        self._booting = Booting(launch_seconds())
        self._known_types = known_instance_types()
        self._image_parameters = image_parameters()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        received_at = time.time()
        if environ.get("PATH_INFO") == BOOT_PATH:
            answer = json_answer({"boot_id": self._boot_id, "pid": os.getpid()})
        elif environ.get("PATH_INFO") == LAUNCHES_PATH:
            answer = self._launch_times.told()
        else:
            request = read_request(environ)
            if request.action == "RunInstances":
                self._launch_times.note(request, received_at)
            answer = self._answer(environ, request)
        start_response(answer.status, [*answer.headers, ("Content-Length", str(len(answer.body)))])
        return [answer.body]

    def _answer(self, environ: dict[str, Any], request: Request) -> Answer:
        call = self._call(request)
        try:
            effects = self._faults.effects_on(call)
        except FaultFileError as error:
            effects = Effects(refusal=Refusal("SandboxFaultFile", str(error), 400))
        if effects.delay_seconds:
            time.sleep(effects.delay_seconds)
        if effects.die == "before":
            _die()
        answer = error_answer(effects.refusal) if effects.refusal else self._performed(environ, request, call)
        if effects.die == "after":
            _die()
        self._log.write(request, call, answer.error_code)
        return answer

    def _performed(self, environ: dict[str, Any], request: Request, call: Call) -> Answer:
        if request.service == "ssm":
            from_table = self._image_parameter_answer(request)
            if from_table is not None:
                return from_table
        with self._one_at_a_time:
            self._booting.advance()
            if request.action == "RunInstances":
                return self._launch(environ, request, call)
            if request.action == "DescribeCapacityReservations":
                return Answer("200 OK", _XML, self._reservations.described())
            return self._ask_moto(environ)

    def _launch(self, environ: dict[str, Any], request: Request, call: Call) -> Answer:
        if call.instance_type and call.instance_type not in self._known_types:
            message = f"The following supplied instance types do not exist: [{call.instance_type}]"
            return error_answer(Refusal("InvalidInstanceType", message, 400))
        token = request.form.get("ClientToken", "")
        digest = hashlib.sha256(repr(sorted(request.form.items())).encode()).hexdigest()
        before = self._launched.get(token)
        if token and before is not None:
            return before[1] if before[0] == digest else error_answer(_TOKEN_REUSED)
        refusal = self._reservations.refusal(request.form)
        answer = error_answer(refusal) if refusal is not None else self._ask_moto(environ)
        if not answer.error_code:
            self._reservations.note(request.form, answer.body)
            self._launched[token] = (digest, answer)
            self._booting.begin(answer.body, request.region)
        return answer

    def _ask_moto(self, environ: dict[str, Any]) -> Answer:
        caught: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            caught.append((status, headers))

        body = b"".join(self._moto(environ, start_response))
        status, headers = caught[-1]
        kept = tuple((name, value) for name, value in headers if name.lower() != "content-length")
        return Answer(status, kept, body)

    def _call(self, request: Request) -> Call:
        if request.action != "RunInstances":
            return Call(request.action)
        with self._one_at_a_time:
            return Call(request.action, *offering(request.form, request.region))

    def _image_parameter_answer(self, request: Request) -> Answer | None:
        if request.action not in ("GetParameter", "GetParameters"):
            return None
        asked = json.loads(request.body or b"{}")
        names = [asked["Name"]] if "Name" in asked else list(asked.get("Names", []))
        found = {name: self._image_parameter(name) for name in names}
        if not names or not all(found.values()):
            return None
        parameters = [
            {"Name": name, "Type": "String", "Value": value, "Version": 1, "DataType": "aws:ec2:image"}
            for name, value in found.items()
        ]
        if request.action == "GetParameter":
            return json_answer({"Parameter": parameters[0]})
        return json_answer({"Parameters": parameters, "InvalidParameters": []})

    def _image_parameter(self, name: str) -> str | None:
        return next((image for pattern, image in self._image_parameters if pattern.fullmatch(name)), None)


_XML = (("Content-Type", "text/xml;charset=UTF-8"),)
_TOKEN_REUSED = Refusal(
    "IdempotentParameterMismatch",
    "The request uses the same client token as a previous, but non-identical request.",
    400,
)


def known_instance_types() -> frozenset[str]:
    """The types that can be launched: moto's own table and the older ones that it has dropped."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    older = json.loads((DATA / "older_instance_types.json").read_text(encoding="utf-8"))
    return frozenset(INSTANCE_TYPES) | frozenset(older["instance_types"])


def image_parameters() -> list[tuple[re.Pattern[str], str]]:
    """SSM parameter names (as patterns: any Kubernetes version, any release) and the sandbox image that each gives."""
    table = json.loads((DATA / "images.json").read_text(encoding="utf-8"))["parameters"]
    anything = {re.escape("{version}"): r"\d+\.\d+", "/recommended/": r"/[\w.-]+/"}
    patterns = []
    for name, image in table.items():
        pattern = re.escape(name)
        for word, any_word in anything.items():
            pattern = pattern.replace(word, any_word)
        patterns.append((re.compile(pattern), image))
    return patterns


def offering(form: Mapping[str, str], region: str) -> tuple[str, str, str]:
    """Instance type, zone and capacity type of a RunInstances request; empty where only moto can tell."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.ec2.models import ec2_backends

    ec2 = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    template = _template_data(ec2, form)
    instance_type = form.get("InstanceType") or str(template.get("InstanceType", ""))
    subnet = form.get("SubnetId") or form.get("NetworkInterface.1.SubnetId") or ""
    in_zones = (zone for zone, subnets in ec2.subnets.items() if subnet in subnets)
    zone = form.get("Placement.AvailabilityZone") or next(in_zones, "")
    return instance_type, zone, _capacity_type(form, template)


def is_running(instance_id: str) -> bool:
    """Whether the instance takes a place, in whatever region it is."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.ec2.models import ec2_backends

    regions = ec2_backends[DEFAULT_ACCOUNT_ID].values()
    states = (found.state for ec2 in regions if (found := ec2.get_instance_by_id(instance_id)) is not None)
    return any(state not in ("shutting-down", "terminated") for state in states)


def tag_of(form: Mapping[str, str], key: str) -> str:
    """A tag that a RunInstances request gives its instances; empty where it gives none of that key."""
    for name, value in form.items():
        if value == key and re.fullmatch(r"TagSpecification\.\d+\.Tag\.\d+\.Key", name):
            return form.get(name.removesuffix("Key") + "Value", "")
    return ""


def _capacity_type(form: Mapping[str, str], template: Mapping[str, Any]) -> str:
    market = form.get("InstanceMarketOptions.MarketType") or (
        (template.get("InstanceMarketOptions") or {}).get("MarketType")
    )
    if market == "spot":
        return "spot"
    reserved = any(key.startswith("CapacityReservationSpecification.CapacityReservationTarget.") for key in form)
    return "reserved" if reserved or market == "capacity-block" else "on-demand"


def _template_data(ec2: Any, form: Mapping[str, str]) -> Mapping[str, Any]:
    by_id, by_name = form.get("LaunchTemplate.LaunchTemplateId"), form.get("LaunchTemplate.LaunchTemplateName")
    found = next(
        (one for one in ec2.launch_templates.values() if one.id == by_id or (by_name and one.name == by_name)),
        None,
    )
    if found is None:
        return {}
    wanted = form.get("LaunchTemplate.Version", "$Default")
    number = {"$Latest": found.latest_version_number, "$Default": found.default_version_number}.get(wanted, wanted)
    version = next((one for one in found.versions if str(one.number) == str(number)), None)
    return version.data if version else {}


def read_request(environ: dict[str, Any]) -> Request:
    """Read the body once and leave it to be read again by moto."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length else b""
    environ["wsgi.input"] = io.BytesIO(body)
    scope = re.search(r"Credential=[^/]*/[^/]*/([^/]*)/([^/]*)/", environ.get("HTTP_AUTHORIZATION", ""))
    region, service = (scope[1], scope[2]) if scope else ("us-east-1", "")
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return Request(service, region, target.rsplit(".", 1)[-1], {}, body)
    is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if is_form else {}
    return Request(service, region, form.get("Action", ""), form, body)


def json_answer(document: Any) -> Answer:
    return Answer("200 OK", (("Content-Type", "application/x-amz-json-1.1"),), json.dumps(document).encode())


def error_answer(refusal: Refusal) -> Answer:
    """An error in EC2's own form."""
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
        f"<Code>{escape(refusal.code)}</Code><Message>{escape(refusal.message)}</Message>"
        f"</Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
    )
    return Answer(f"{refusal.status} Refused", _XML, body.encode())


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
