"""The articles' manifests, as they are, through the real engine into EC2."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.workspaces import Project, project

pytestmark = pytest.mark.engine
MANIFESTS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "manifests"
NAMES = ("article-a-v1.yaml", "article-a-pools.yaml", "article-b-v1beta1.yaml")


@pytest.fixture
def articles(tmp_path: Path, toolchain: object) -> Iterator[Project]:
    if not MANIFESTS.is_dir():
        pytest.skip(f"NOT RUN: the articles' manifests are not at {MANIFESTS}")
    with project(tmp_path) as made:
        (made.root / "policies" / "pools.yaml").unlink()
        for name in NAMES:
            shutil.copy(MANIFESTS / name, made.root / "policies" / name)
        shutil.copy(MANIFESTS / "article-a-workload.yaml", made.root / "workload.yaml")
        stack = made.root / "stacks" / "Pulumi.sandbox.yaml"
        text = stack.read_text().replace("    pods: 0", "    pods: 0\n    manifests: [workload.yaml]")
        stack.write_text(_defaulted(text))
        yield made


def test_the_articles_pod_gets_the_cheapest_instance_that_the_requirements_permit(articles: Project) -> None:
    checked = articles.nodewright("check", "sandbox")
    assert checked.code == 0, checked.words
    assert "promises an l40s, but the pool permits a10g too" in checked.stdout.replace("\n", " ")

    ran = articles.up()

    assert ran.code == 0, ran.words
    [instance] = articles.instances()
    assert instance["InstanceType"].startswith("g5.")
    [claim] = [claim for node_set in articles.document()["node_sets"] for claim in node_set["claims"]]
    assert claim["labels"]["karpenter.k8s.aws/instance-gpu-name"] == "a10g"
    assert (claim["node_pool"], claim["node_class"]) == ("gpu-inference", "gpu-nodeclass")
    ec2 = articles.ec2()
    [subnet] = ec2.describe_subnets(SubnetIds=[instance["SubnetId"]])["Subnets"]
    assert subnet["VpcId"] == instance["VpcId"]
    [group] = ec2.describe_security_groups(GroupIds=[instance["SecurityGroups"][0]["GroupId"]])["SecurityGroups"]
    assert group["IpPermissionsEgress"] != []
    assert articles.nodewright("status", "sandbox", "-o", "json").json["nodes"][0]["node_pool"] == "gpu-inference"


def _defaulted(stack: str) -> str:
    """The stack file with the articles' class for the pools that name none."""
    return stack.replace(
        "  nodewright:policies:", "  nodewright:defaultNodeClass: gpu-nodeclass\n  nodewright:policies:"
    )
