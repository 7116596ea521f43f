"""One environment converges end to end: the commands of the README on the real Pulumi engine, EC2 by moto."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.workspaces import NODE_POOL, OTHER_NODE_POOL, Project, claim_of, kill_group, project

pytestmark = pytest.mark.engine


@pytest.fixture
def sandbox(tmp_path: Path, toolchain: object) -> Iterator[Project]:
    with project(tmp_path) as made:
        made.scale(2)
        yield made


@pytest.fixture
def converged(sandbox: Project) -> Project:
    ran = sandbox.up()
    assert ran.code == 0, ran.words
    return sandbox


def no_pulumi(folder: Path) -> dict[str, str]:
    """Variables under which no Pulumi can be found or built: whoever needs one fails."""
    return {"XDG_CACHE_HOME": str(folder / "no-cache"), "PATH": "/usr/bin:/bin", "GOFLAGS": "-mod=readonly"}


def test_up_launches_what_the_pods_need_into_the_network_that_it_makes(converged: Project) -> None:
    instances = converged.instances()

    assert [claim_of(instance) for instance in instances] == converged.claims()
    assert len(instances) == 2
    assert {instance["InstanceType"] for instance in instances} == {"g6e.2xlarge"}
    ec2 = converged.ec2()
    subnets = {subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]}
    assert {instance["SubnetId"] for instance in instances} <= subnets
    for instance in instances:
        tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
        assert tags["nodewright.dev/environment"] == "sandbox"
        assert tags["karpenter.sh/nodepool"] == "inference"
        assert tags["nodewright.dev/document-version"] == "1"
        assert len(instance["SecurityGroups"]) == 1


def test_a_second_up_has_nothing_to_do_and_starts_no_pulumi(converged: Project, tmp_path: Path) -> None:
    before = converged.document()

    again = converged.up(**no_pulumi(tmp_path))

    assert again.code == 0, again.words
    assert converged.document() == before
    assert converged.nodewright("plan", "sandbox").code == 0


def test_one_more_pod_adds_one_instance_and_leaves_the_others_alone(converged: Project) -> None:
    before = {instance["InstanceId"] for instance in converged.instances()}
    converged.scale(3)

    assert converged.nodewright("plan", "sandbox").code == 2
    assert converged.up().code == 0

    after = {instance["InstanceId"] for instance in converged.instances()}
    assert before < after
    assert len(after) == 3


def test_an_empty_node_leaves_by_a_removal_record_and_only_it_goes(converged: Project) -> None:
    before = converged.claims()
    converged.scale(1)

    ran = converged.up()

    assert ran.code == 0, ran.words
    assert len(converged.instances()) == 1
    [gone] = set(before) - set(converged.claims())
    history = sorted((converged.root / ".nodewright" / "sandbox" / "documents").iterdir())
    records = [record for file in history for record in json.loads(file.read_text())["removals"]]
    assert {(record["claim"], record["reason"]) for record in records} == {(gone, "Empty")}


def test_a_pool_deleted_from_policy_removes_nothing(converged: Project) -> None:
    before = [instance["InstanceId"] for instance in converged.instances()]
    converged.write_policy(OTHER_NODE_POOL, NODE_POOL.split("---")[1])

    ran = converged.up()

    assert ran.code == 0, ran.words
    assert [instance["InstanceId"] for instance in converged.instances()] == before
    assert converged.claims() != []


def test_a_full_update_keeps_every_running_instance(converged: Project) -> None:
    before = {instance["InstanceId"] for instance in converged.instances()}
    # What the change makes of running nodes is for a pass and the budgets to say: here none may go for it.
    held = NODE_POOL.replace('budgets: [{nodes: "100%"}]', 'budgets: [{nodes: "0"}]')
    converged.write_policy(held.replace("role: gpu-nodes", "role: gpu-nodes\n  detailedMonitoring: true"))
    converged.scale(3)

    ran = converged.up()

    assert ran.code == 0, ran.words
    assert before < {instance["InstanceId"] for instance in converged.instances()}


def test_pulumi_up_from_nothing_does_what_its_preview_said(sandbox: Project) -> None:
    preview = sandbox.pulumi("preview", "-s", "sandbox", "--json", "--non-interactive")
    assert preview.code == 0, preview.words
    promised = json.loads(preview.stdout)["changeSummary"]["create"]

    ran = sandbox.pulumi("up", "-s", "sandbox", "--yes", "--non-interactive")

    assert ran.code == 0, ran.words
    assert f"+ {promised} created" in ran.stdout
    assert [claim_of(instance) for instance in sandbox.instances()] == sandbox.claims()
    assert len(sandbox.claims()) == 2
    again = sandbox.up()
    assert again.code == 0, again.words
    assert len(sandbox.instances()) == 2


def test_the_reviewed_plan_is_applied_by_its_hash_and_is_refused_once_stale(sandbox: Project) -> None:
    planned = sandbox.nodewright("plan", "sandbox", "-o", "json")
    assert planned.code == 2, planned.words
    reviewed = planned.json["hash"]

    applied = sandbox.nodewright("up", "sandbox", "--plan", reviewed[:12])
    assert applied.code == 0, applied.words
    assert sandbox.document()["plan_hash"] == reviewed

    again = sandbox.nodewright("up", "sandbox", "--plan", reviewed[:12])
    assert again.code == 1
    assert "nodewright plan sandbox" in again.stderr


def test_pulumi_up_refuses_a_pin_whose_environment_has_moved_on(converged: Project) -> None:
    converged.scale(3)
    assert converged.nodewright("plan", "sandbox").code == 2
    pin = converged.root / ".nodewright" / "sandbox" / "pin.json"
    stale = pin.read_text()
    assert converged.up().code == 0
    pin.write_text(stale)

    ran = converged.pulumi("up", "-s", "sandbox", "--yes", "--skip-preview", "--non-interactive")

    assert ran.code != 0
    assert "was decided on version 1" in ran.words
    assert len(converged.instances()) == 3


def test_of_two_runs_at_once_none_doubles_a_launch(sandbox: Project) -> None:
    runs = [sandbox.started_up(), sandbox.started_up()]
    ended = [run.communicate(timeout=300)[0] for run in runs]
    codes = sorted(run.returncode for run in runs)

    assert codes in ([0, 0], [0, 1]), ended
    assert [claim_of(instance) for instance in sandbox.instances()] == sandbox.claims()
    assert len(sandbox.claims()) == 2
    assert sandbox.up().code == 0
    assert len(sandbox.instances()) == 2


def test_a_run_killed_in_the_middle_of_a_create_is_carried_on_without_a_double(sandbox: Project) -> None:
    faults = sandbox.root / ".nodewright" / "sandbox" / "ec2" / "faults.json"
    requests = faults.with_name("requests.jsonl")
    assert sandbox.nodewright("plan", "sandbox").code == 2
    # The launch is done at once; Pulumi's provider then waits for an answer about it, and is killed while it does.
    write_faults(faults, {"fault": "delay", "action": "DescribeInstances", "seconds": 2.0, "times": None})
    killed = sandbox.started_up()
    await_request(requests, "RunInstances", killed)
    kill_group(killed)
    faults.unlink()

    ran = sandbox.up()

    assert ran.code == 0, ran.words
    assert [claim_of(instance) for instance in sandbox.instances()] == sandbox.claims()
    assert len(sandbox.instances()) == 2


@pytest.mark.parametrize("pods_before", [0, 2], ids=["a whole update", "a targeted update"])
def test_an_interrupted_run_says_so_and_the_next_finishes_what_it_began(sandbox: Project, pods_before: int) -> None:
    faults = sandbox.root / ".nodewright" / "sandbox" / "ec2" / "faults.json"
    requests = faults.with_name("requests.jsonl")
    if pods_before:
        assert sandbox.up().code == 0
    sandbox.scale(pods_before + 2)
    assert sandbox.nodewright("plan", "sandbox").code == 2
    launched_before = requests.read_text().count('"RunInstances"')
    write_faults(faults, {"fault": "delay", "action": "DescribeInstances", "seconds": 2.0, "times": None})
    running = sandbox.started_up()
    await_request(requests, "RunInstances", running, times=launched_before + 1)
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate(timeout=120)[0]
    faults.unlink()
    assert running.returncode == 130, said
    assert "the next run carries on from it" in said
    assert f"version {sandbox.document()['version']} is not settled" in said
    # What this is about: the stack holds machines that were made and no longer waited for.
    assert '"initErrors"' in sandbox.pulumi("stack", "export", "-s", "sandbox").stdout
    begun = {instance["InstanceId"] for instance in sandbox.instances()}

    ran = sandbox.up()

    assert ran.code == 0, ran.words
    assert "failed" not in ran.stdout
    assert [claim_of(instance) for instance in sandbox.instances()] == sandbox.claims()
    assert len(sandbox.instances()) == pods_before + 2
    assert begun <= {instance["InstanceId"] for instance in sandbox.instances()}
    assert '"initErrors"' not in sandbox.pulumi("stack", "export", "-s", "sandbox").stdout


def test_a_refused_launch_is_planned_around_by_the_next_pass(sandbox: Project) -> None:
    faults = sandbox.root / ".nodewright" / "sandbox" / "ec2" / "faults.json"
    assert sandbox.nodewright("plan", "sandbox").code == 2
    write_faults(faults, {"fault": "no-capacity", "instance_type": "g6e.2xlarge"})

    ran = sandbox.up()

    assert ran.code == 0, ran.words
    assert "InsufficientInstanceCapacity" in ran.stdout
    assert len(sandbox.instances()) == 2
    assert "g6e.2xlarge" not in {instance["InstanceType"] for instance in sandbox.instances()}


def test_a_sandbox_whose_ec2_was_lost_is_rebuilt_by_the_next_up(converged: Project) -> None:
    before = converged.claims()
    assert converged.nodewright("sandbox", "down", "sandbox").code == 0

    ran = converged.up()

    assert ran.code == 0, ran.words
    assert [claim_of(instance) for instance in converged.instances()] == converged.claims()
    assert len(converged.claims()) == 2
    assert not set(before) & set(converged.claims())


def test_destroy_leaves_nothing_and_a_later_up_starts_anew(converged: Project) -> None:
    ran = converged.nodewright("destroy", "sandbox", "--yes")

    assert ran.code == 0, ran.words
    assert converged.instances() == []
    ec2 = converged.ec2()
    ours = [{"Name": "tag:nodewright.dev/environment", "Values": ["sandbox"]}]
    assert ec2.describe_vpcs(Filters=ours)["Vpcs"] == []
    assert ec2.describe_subnets(Filters=ours)["Subnets"] == []
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert converged.up().code == 0
    assert len(converged.instances()) == 2


def write_faults(file: Path, *faults: dict[str, object]) -> None:
    file.write_text(json.dumps({"faults": faults}))


def await_request(requests: Path, action: str, running: object, times: int = 1) -> None:
    """Until the endpoint has been asked for the action so often in all; fails after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if requests.exists() and requests.read_text().count(f'"{action}"') >= times:
            return
        time.sleep(0.05)
    pytest.fail(f"no {action} within a minute of {running}")
