"""One pass: observe, decide, publish, converge. A pass that is killed anywhere is resumed from facts by the next."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from engine.converge.outcomes import DUPLICATE, of_all_lanes
from engine.converge.store import Pin
from engine.decide import decide
from engine.model import labels as keys
from engine.model.document import DesiredDocument
from engine.model.environment import NetworkMode
from engine.model.eviction import RefusedEviction
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.model.snapshot import CloudFacts, Snapshot
from engine.reconcile.clock_words import clock_words
from engine.reconcile.hands import chores_of, drain_now, drains_of, nominate_and_register
from engine.reconcile.lanes import converge_lanes
from engine.reconcile.mailbox import Mailbox, read_now
from engine.reconcile.one_writer import sole_writer
from engine.reconcile.ports import OnEvent, Ports, Tell
from engine.reconcile.refused_evictions import refusal_line
from engine.reconcile.settledness import unsettled_lanes, with_what_settled

# Somebody who publishes more often than that while we look is waited for by the next look.
_LOOKS = 3
_REFUSED = (OutcomeStatus.FAILED_CAPACITY, OutcomeStatus.FAILED_OTHER)


@frozen
class Proposal:
    """What one look at the world led to.

    ``problems`` are objects that could not be read, each a sentence; ``failures`` what a person must mend before some
    pool can launch, each a sentence: the rest goes on without it. ``network_lost``: the environment's own network
    stands no more although its document says so. ``is_settled``: the published document is known to be converged.
    """

    snapshot: Snapshot
    plan: Plan
    problems: tuple[str, ...]
    is_settled: bool
    network_lost: bool = False
    failures: tuple[str, ...] = ()

    @property
    def needs_converging(self) -> bool:
        """Whether anything is left to do: a change of the plan's, or a document that a killed run left half-way."""
        return not self.plan.is_empty or not self.is_settled

    @property
    def paused(self) -> str:
        """Why nothing of this may be done: the environment is paused, by its stack file or in its cluster."""
        return self.plan.paused or self.snapshot.paused


def observe(ports: Ports, mail: Mailbox | None = None) -> tuple[Snapshot, tuple[str, ...]]:
    """Everything that deciding needs, as seen now, and what could not be read. Raises Fault when a read fails.

    Only who acts gives a ``mail`` box: whoever reads the queue keeps its messages from others for a while.
    """
    unread = read_now(ports.interruptions, mail) if mail is not None else ()
    document = ports.store.document()
    for _ in range(_LOOKS):
        remembered = ports.store.ledger()
        cloud = ports.cloud.read(ports.environment, ports.policy, document, remembered.ledger)
        cluster = ports.cluster.read(cloud, document)
        # A machine that a document published meanwhile lets go would look lost beside the one before.
        seen, document = document, ports.store.document()
        if _version_of(seen) == _version_of(document):
            break
    ports.lease.look()
    snapshot = Snapshot(
        environment=ports.environment.name,
        taken_at=ports.now() - cloud.clock_ahead,
        pods=cluster.pods,
        nodes=cluster.nodes,
        daemon_sets=cluster.daemon_sets,
        cloud=cloud,
        document=seen,
        ledger=with_what_settled(remembered.ledger, seen, ports.store.outcomes()),
        problems=cluster.problems,
        workload=cluster.workload,
        karpenter=cluster.karpenter,
        paused=ports.environment.paused or ports.lease.paused(),
        interruptions=mail.told() if mail is not None else (),
    )
    warnings = (remembered.warning,) if remembered.warning else ()
    return snapshot, (*map(str, cluster.problems), *clock_words(cloud), *warnings, *unread)


def _version_of(document: DesiredDocument | None) -> int:
    return document.version if document else 0


def propose(ports: Ports, mail: Mailbox | None = None) -> Proposal:
    """Look and decide; changes nothing."""
    snapshot, problems = observe(ports, mail)
    plan = decide(snapshot, ports.policy, ports.catalog, ports.environment)
    lost = not snapshot.cloud.network_stands
    settled = not unsettled_lanes(snapshot.document, ports.store.outcomes()) and not lost
    return Proposal(
        snapshot=snapshot,
        plan=plan,
        problems=problems,
        is_settled=settled,
        network_lost=lost,
        failures=tuple(selector_failures(ports, snapshot.cloud)),
    )


def pin(ports: Ports, plan: Plan) -> None:
    """Keep a plan on disk, so that exactly what was shown can be applied later."""
    ports.store.write_pin(Pin(base_version=plan.base_version, plan_hash=plan.hash, plan=plan, made_at=ports.now()))


def reviewed_plan(ports: Ports, plan_hash: str) -> Plan:
    """The pinned plan of that hash (a prefix of 8 or more digits will do). Raises Fault when it may not be applied."""
    pinned = ports.store.pin()
    name = ports.environment.name
    if pinned is None or len(plan_hash) < 8 or not pinned.plan_hash.startswith(plan_hash):
        have = f"the plan on disk is {pinned.plan_hash[:12]}" if pinned else "no plan is on disk"
        raise Fault(f"environment {name}: there is no plan {plan_hash}; {have}", f"nodewright plan {name}")
    refuse_if_stale(ports, pinned.plan)
    return pinned.plan


def refuse_if_stale(ports: Ports, plan: Plan) -> None:
    """Raises Fault when the environment has moved on since the plan was decided."""
    version = _version_of(ports.store.document())
    if version != plan.base_version:
        raise Fault(
            f"environment {plan.environment}: plan {plan.hash[:12]} was decided on version {plan.base_version}, "
            f"and version {version} is published by now",
            f"review a new one: nodewright plan {plan.environment}",
        )


def refuse_if_paused(ports: Ports, proposal: Proposal) -> None:
    """Raises Fault where a person has paused the environment."""
    if proposal.paused:
        raise Fault(
            f"environment {ports.environment.name} is paused: {proposal.paused}",
            f"take nodewright:paused out of its stack file, or the annotation {keys.PAUSED} off its Lease",
        )


def apply(ports: Ports, proposal: Proposal, tell: Tell, on_progress: OnEvent) -> Outcome | None:
    """Do what the plan says: mark nodes, publish, converge, remember. None when the plan only marks.

    Raises Fault when the environment has moved on or is paused, VersionConflict when another writer was faster,
    EnvironmentHeld.
    """
    plan = proposal.plan
    refuse_if_paused(ports, proposal)
    with sole_writer(ports, tell):
        refuse_if_stale(ports, plan)
        ports.store.write_ledger(plan.ledger)
        _mark(ports, proposal, tell)
        if not _changes_document(proposal) and proposal.is_settled:
            return None
        return _published_and_converged(ports, proposal, tell, on_progress)


def remember_clocks(ports: Ports, plan: Plan) -> None:
    """Keep the clocks that a plan with nothing to do has started, such as since when a node stands empty."""
    if plan.ledger != ports.store.ledger().ledger:
        with sole_writer(ports, _say_nothing):
            ports.store.write_ledger(plan.ledger)


def _say_nothing(line: str) -> None:
    """A clock is kept without a word."""


def selector_failures(ports: Ports, cloud: CloudFacts) -> Iterator[str]:
    """What keeps a pool from launching: in an existing network, a selector of its class that matches nothing."""
    if ports.environment.network.mode is NetworkMode.OWNED:
        return
    in_use = {pool.node_class for pool in ports.policy.node_pools}
    for node_class in sorted(ports.policy.node_classes, key=lambda each: each.name):
        if node_class.name not in in_use:
            continue
        place = f"{node_class.position.file}:{node_class.position.line}: EC2NodeClass {node_class.name}"
        if not cloud.subnets.get(node_class.name):
            yield f"{place}: subnetSelectorTerms match no subnet in {ports.environment.region}"
        if not cloud.security_group_ids.get(node_class.name):
            yield f"{place}: securityGroupSelectorTerms match no security group in {ports.environment.region}"


def receive_nodes(ports: Ports, proposal: Proposal) -> None:
    """Tell pods which nodes they were planned for, and open the nodes that have come. Raises Fault."""
    nominate_and_register(ports, chores_of(proposal.plan, proposal.snapshot))


def _changes_document(proposal: Proposal) -> bool:
    published = proposal.snapshot.document
    return published is None or proposal.plan.document.version != published.version


def _mark(ports: Ports, proposal: Proposal, tell: Tell) -> None:
    blocked = proposal.snapshot.blocked_evictions
    for drain in drains_of(proposal.plan):
        for answer in drain_now(ports, drain) or ():
            if answer.is_refused:
                tell(refusal_line(RefusedEviction(drain.node, answer), blocked.get(answer.pod)))


def _published_and_converged(ports: Ports, proposal: Proposal, tell: Tell, on_progress: OnEvent) -> Outcome:
    document = proposal.plan.document
    # Read again under the lease: a launch that another run left behind since must be adopted, not doubled.
    cloud = ports.cloud.read(ports.environment, ports.policy, document, proposal.plan.ledger)
    main = ports.environment.name
    with ports.session(tell) as session:
        session.lane(main).preflight(document, cloud.instances)
        if _changes_document(proposal):
            ports.store.publish(document)
            ports.store.drop_pin()
        stacks = unsettled_lanes(document, ports.store.outcomes()) or (main,)
        if proposal.network_lost and main not in stacks:
            stacks = (main, *stacks)
        converged = converge_lanes(
            session,
            document,
            cloud.instances,
            on_progress,
            stacks,
            proposal.plan.ledger.instance_ids,
            refresh=proposal.network_lost,
        )
    done = [evolve(outcome, plan_hash=document.plan_hash) for outcome in converged]
    for outcome in done:
        ports.store.write_outcome(outcome)
    whole = of_all_lanes(done)
    is_settled = whole.is_settled and not unsettled_lanes(document, ports.store.outcomes())
    whole = evolve(whole, is_settled=is_settled)
    ports.store.write_ledger(learned(proposal.plan.ledger, whole))
    return whole


def learned(ledger: Ledger, outcome: Outcome) -> Ledger:
    """The ledger with what this pass found out: instance ids of launches, and launches to answer for next time.

    A settled ``outcome`` is one of the whole document, in every lane.
    """
    # Of machines that were only half-made as well: by its id alone EC2 can say that one of them is gone.
    launched = {one.claim: one.instance_id for one in outcome.claims if one.instance_id and one.code != DUPLICATE}
    refused = tuple(one for one in outcome.claims if one.status in _REFUSED)
    return evolve(
        ledger,
        instance_ids={**ledger.instance_ids, **launched},
        outcomes=_newest_by_claim((*ledger.outcomes, *refused)),
        settled_version=outcome.version if outcome.is_settled else ledger.settled_version,
    )


def _newest_by_claim(outcomes: tuple[ClaimOutcome, ...]) -> tuple[ClaimOutcome, ...]:
    by_claim = {outcome.claim: outcome for outcome in outcomes}
    return tuple(by_claim[claim] for claim in sorted(by_claim))
