"""EC2 as a simulated world has it: it sells or refuses machines, boots them, and takes them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from random import Random

from attrs import define, evolve

from engine.catalog.quota import quota_class
from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.node import Instance, InstanceState
from engine.model.outcome import ClaimOutcome, OutcomeStatus
from engine.model.reservation import CapacityReservation
from engine.simulate.agenda import Agenda
from engine.simulate.conditions import Conditions

# As long as the real one shows a machine that it has ended.
_SHOWN_AFTER_END = timedelta(hours=1)
_QUOTA_CODES = {keys.SPOT: "MaxSpotInstanceCountExceeded", keys.ON_DEMAND: "VcpuLimitExceeded"}


@define
class _Machine:
    """``since`` is when it was begun to be paid for here, ``until`` when no more; None is not yet."""

    instance: Instance
    claim: Claim | None
    since: datetime
    until: datetime | None = None

    def usd(self, now: datetime) -> float:
        hours = ((self.until or now) - self.since).total_seconds() / 3600
        return hours * self.claim.usd_per_hour.micros / 1e6 if self.claim is not None else 0.0


class SimulatedEc2:
    """``came_up`` is told of each machine that runs, ``ended`` of each that is gone."""

    def __init__(
        self,
        agenda: Agenda,
        conditions: Conditions,
        chance: Random,
        vcpus: Mapping[str, int],
        came_up: Callable[[Claim, Instance], None],
        ended: Callable[[Instance], None],
    ) -> None:
        self._agenda, self._conditions, self._chance, self._vcpus = agenda, conditions, chance, vcpus
        self._came_up, self._ended = came_up, ended
        self._machines: dict[str, _Machine] = {}
        self._launched = 0
        self._usd_of_forgotten = 0.0

    def adopt(self, instances: Iterable[Instance], claims: Mapping[str, Claim]) -> None:
        """Machines that were there before; those that are not up yet come up as any do."""
        for instance in sorted(instances, key=lambda each: each.id):
            machine = _Machine(instance, claims.get(instance.claim), self._agenda.now)
            self._machines[instance.id] = machine
            if instance.state is InstanceState.PENDING:
                self._boot(machine)

    def run_instance(self, claim: Claim, reservations: Iterable[CapacityReservation] = ()) -> ClaimOutcome:
        """Launch a claim's machine, or refuse it. ``reservations`` say what is available in each of them now."""
        inputs, now = claim.inputs, self._agenda.now
        code = self._refusal(claim, reservations)
        if code:
            return ClaimOutcome(
                claim.name,
                OutcomeStatus.FAILED_CAPACITY,
                offering=inputs.offering_key,
                code=code,
                message=f"{code} for {inputs.offering_key}",
            )
        self._launched += 1
        instance = Instance(
            id=f"i-{self._launched:08d}{claim.name.encode().hex()[-9:]}",
            claim=claim.name,
            state=InstanceState.PENDING,
            instance_type=inputs.instance_type,
            zone=inputs.zone,
            capacity_type=inputs.capacity_type,
            launched_at=now,
        )
        machine = _Machine(instance, claim, now)
        self._machines[instance.id] = machine
        self._boot(machine)
        return ClaimOutcome(claim.name, OutcomeStatus.CREATED, instance.id, inputs.offering_key)

    def terminate(self, claim_name: str) -> None:
        """Let every machine of a claim go."""
        for machine in self._machines.values():
            if machine.instance.claim == claim_name and machine.instance.is_alive:
                machine.instance = evolve(machine.instance, state=InstanceState.SHUTTING_DOWN)
                machine.until = self._agenda.now
                wait = self._conditions.latencies.terminate.drawn(self._chance)
                self._agenda.enter(self._agenda.now + wait, lambda gone=machine: self._end(gone))  # type: ignore[misc]

    def lose(self, instance_id: str) -> None:
        """The machine ends at once, asked by nobody."""
        machine = self._machines.get(instance_id)
        if machine is not None and machine.instance.is_alive:
            self._end(machine)

    def instances(self) -> tuple[Instance, ...]:
        """All that EC2 shows, in id order: those that ended a while ago it forgets."""
        return tuple(self._machines[name].instance for name in sorted(self._machines))

    def alive(self) -> list[Instance]:
        """Those that are paid for, in id order."""
        return [each for each in self.instances() if each.is_alive]

    def usd(self) -> float:
        """What all machines have cost by now, at the prices that they were bought at."""
        return self._usd_of_forgotten + sum(each.usd(self._agenda.now) for each in self._machines.values())

    def claim_of(self, instance_id: str) -> Claim | None:
        machine = self._machines.get(instance_id)
        return machine.claim if machine is not None else None

    def state_of(self, instance_id: str) -> InstanceState:
        """What EC2 says of one machine by its id. One that it forgot is terminated."""
        machine = self._machines.get(instance_id)
        return machine.instance.state if machine is not None else InstanceState.TERMINATED

    def reserved_in_use(self, reservation_id: str) -> int:
        return sum(
            machine.instance.is_alive
            and machine.claim is not None
            and machine.claim.inputs.capacity_reservation_id == reservation_id
            for machine in self._machines.values()
        )

    def _refusal(self, claim: Claim, reservations: Iterable[CapacityReservation]) -> str:
        inputs, now = claim.inputs, self._agenda.now
        if inputs.capacity_reservation_id is not None:
            known = next((each for each in reservations if each.id == inputs.capacity_reservation_id), None)
            return "ReservationCapacityExceeded" if known is None or known.available <= 0 else ""
        for shortage in self._conditions.shortages:
            if shortage.refuses(inputs.instance_type, inputs.zone, inputs.capacity_type, now):
                return shortage.code
        quota = quota_class(inputs.instance_type, inputs.capacity_type)
        most = self._conditions.vcpu_quotas.get(quota)
        asked = self._vcpus.get(inputs.instance_type, 0)
        if most is not None and self._vcpus_in_use(quota) + asked > most:
            return _QUOTA_CODES.get(inputs.capacity_type, "VcpuLimitExceeded")
        return ""

    def _vcpus_in_use(self, quota: str) -> int:
        return sum(
            self._vcpus.get(each.instance_type, 0)
            for each in self.alive()
            if quota_class(each.instance_type, each.capacity_type) == quota
        )

    def _boot(self, machine: _Machine) -> None:
        wait = self._conditions.latencies.run.drawn(self._chance)
        self._agenda.enter(self._agenda.now + wait, lambda: self._run(machine))

    def _run(self, machine: _Machine) -> None:
        if machine.instance.state is InstanceState.PENDING:
            machine.instance = evolve(machine.instance, state=InstanceState.RUNNING)
            if machine.claim is not None:
                self._came_up(machine.claim, machine.instance)

    def _end(self, machine: _Machine) -> None:
        machine.instance = evolve(machine.instance, state=InstanceState.TERMINATED)
        machine.until = machine.until or self._agenda.now
        self._ended(machine.instance)
        identity = machine.instance.id
        forget_at: datetime = self._agenda.now + _SHOWN_AFTER_END
        self._agenda.enter(forget_at, lambda: self._forget(identity))

    def _forget(self, identity: str) -> None:
        self._usd_of_forgotten += self._machines.pop(identity).usd(self._agenda.now)
