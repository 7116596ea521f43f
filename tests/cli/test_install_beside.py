"""The part of `up` and `destroy` that is in the cluster: its faults are told and hold up nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from engine.cli.install import install_with_the_rest, remove_before_the_rest
from engine.model.environment import InCluster, Sandbox
from engine.reconcile.workspace import Workspace
from tests import builders
from tests.policy.texts import CLASS, POOL

STACK = """
config:
  nodewright:region: us-east-1
  nodewright:cluster:
    {name: c, endpoint: "https://127.0.0.1:9", certificateAuthority: dGVzdA==, serviceCidr: 10.0.0.0/24,
     kubeconfig: no-such-file}
  nodewright:network: {mode: owned, zones: {us-east-1a: use1-az1}}
  nodewright:inCluster: {namespace: nw}
"""


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A project whose cluster cannot be reached, on a machine without any of the programs."""
    for name in ("stacks", "policies"):
        (tmp_path / name).mkdir()
    (tmp_path / "stacks" / "Pulumi.test.yaml").write_text(STACK)
    (tmp_path / "policies" / "all.yaml").write_text(f"{POOL}---\n{CLASS}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Workspace(tmp_path)


def test_what_cannot_be_installed_is_told_and_ends_nothing(away: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    environment = away.environment("test")
    assert not install_with_the_rest(away, environment, is_approved=True, is_quiet=False)
    assert "in the cluster: " in capsys.readouterr().err


def test_what_cannot_be_removed_is_told_and_ends_nothing(away: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert not remove_before_the_rest(away, away.environment("test"))
    assert "in the cluster: " in capsys.readouterr().err


@pytest.mark.parametrize("asked", [None, InCluster(namespace="nw")])
def test_where_nothing_is_to_be_in_a_cluster_nothing_is_looked_for(away: Workspace, asked: InCluster | None) -> None:
    sandbox = None if asked is None else Sandbox(pods=1)
    environment = evolve(builders.environment("other"), in_cluster=asked, sandbox=sandbox)
    assert install_with_the_rest(away, environment, is_approved=False, is_quiet=True)
    assert remove_before_the_rest(away, environment)
