"""Two articles' manifests load as they are: the right meaning, with a warning for each old or odd spelling.

The articles' own files stand beside the checkout where they are at hand; the same shapes, written by us, always run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from engine.catalog.build import build_catalog
from engine.model import labels
from engine.model.diagnostic import InvalidInput
from engine.model.environment import Pricing
from engine.model.policy import AmiFamily, BlockDevice, ConsolidationPolicy, Policy, SelectorTerm
from engine.model.quantity import Resources
from engine.observe.catalog_source import read_catalog_data
from engine.policy.lint import lint
from engine.policy.load import load_policy
from tests import builders

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "manifests"
Files = Sequence[tuple[str, bytes]]

OWN = {
    "article-a-v1.yaml": """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu-inference}
spec:
  template:
    metadata:
      labels: {workload-type: online-inference, accelerator: nvidia-l40s}
    spec:
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [g]}
        - {key: karpenter.k8s.aws/instance-gpu-count, operator: In, values: ["1", "4", "8"]}
        - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [l40s, a10g, h100]}
        - {key: karpenter.k8s.aws/instance-capacity-type, operator: In, values: [on-demand, spot]}
      taints:
        - {key: nvidia.com/gpu, effect: NoSchedule}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-nodeclass}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 300s, expireAfter: 720h}
  limits: {cpu: "1000", memory: 1000Ti, nvidia.com/gpu: "100"}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu-nodeclass}
spec:
  role: KarpenterNodeRole
  amiFamily: AL2023
  tags: {Environment: production, workload-type: inference}
  userData: |
    #!/bin/bash
    echo hello
  blockDeviceMappings:
    - deviceName: /dev/sda1
      ebs: {volumeSize: 100Gi, volumeType: gp3}
  securityGroupSelector: {karpenter.sh/discovery: gpu-cluster}
  subnetSelector: {karpenter.sh/discovery: gpu-cluster}
""",
    "article-a-pools.yaml": "---\n".join(
        f"""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}}}
spec:
  template:
    spec:
      requirements:
        - {{key: karpenter.k8s.aws/instance-capacity-type, operator: In, values: [{capacity_type}]}}
      taints: [{{key: workload-type, value: {name[4:]}, effect: NoSchedule}}]
  limits: {{nvidia.com/gpu: "{gpus}"}}
"""
        for name, capacity_type, gpus in (("gpu-core", "on-demand", 50), ("gpu-elastic", "spot", 100))
    ),
    "article-a-workload.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: llm}\n---\n"
    "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: prepull}\n",
    "article-b-v1beta1.yaml": """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: gpu-inference-nodepool}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6, p4d]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: gpu-optimized-nodeclass}
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 720h}
---
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: gpu-optimized-nodeclass}
spec:
  amiFamily: AL2
  amiSelectorTerms: [{id: ami-0123456789abcdef0}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: enterprise-ai-cluster}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: enterprise-ai-cluster}}]
  blockDeviceMappings:
    - deviceName: /dev/xvda
      ebs: {volumeSize: 200Gi, volumeType: gp3, iops: 5000, throughput: 500}
""",
}


@pytest.fixture(params=["as they are", "own shapes"])
def files(request: pytest.FixtureRequest) -> Files:
    if request.param == "own shapes":
        return [(name, text.encode()) for name, text in OWN.items()]
    if not FOLDER.is_dir():
        pytest.skip(f"the articles' own manifests are not at hand: there is no folder {FOLDER}")
    return [(file.name, file.read_bytes()) for file in sorted(FOLDER.glob("*.yaml"))]


@pytest.fixture
def policy(files: Files) -> Policy:
    return load_policy(files, builders.environment(default_node_class="gpu-nodeclass"))


def warned(policy: Policy, file: str) -> Counter[str]:
    return Counter(each.rule for each in policy.warnings if each.position.file == file)


def test_the_inference_pool_means_what_its_author_meant(policy: Policy) -> None:
    pool = policy.node_pool("gpu-inference")
    assert pool is not None
    assert {(each.key, each.values) for each in pool.requirements} == {
        (labels.ARCH, ("amd64",)),
        (labels.INSTANCE_CATEGORY, ("g",)),
        (labels.INSTANCE_GPU_COUNT, ("1", "4", "8")),
        (labels.INSTANCE_GPU_NAME, ("l40s", "a10g", "h100")),
        (labels.CAPACITY_TYPE, ("on-demand", "spot")),
    }
    assert pool.labels == {"workload-type": "online-inference", "accelerator": "nvidia-l40s"}
    assert [str(taint) for taint in pool.taints] == ["nvidia.com/gpu:NoSchedule"]
    assert pool.expire_after == timedelta(hours=720)
    assert pool.disruption.consolidate_after == timedelta(minutes=5)
    assert pool.limits == Resources({"cpu": 1_000_000, "memory": 1000 * 2**40, "nvidia.com/gpu": 100})


def test_the_class_of_plain_maps_means_what_its_author_meant(policy: Policy) -> None:
    node_class = policy.node_class("gpu-nodeclass")
    assert node_class is not None
    discovery = (SelectorTerm(tags={"karpenter.sh/discovery": "gpu-cluster"}),)
    assert (node_class.subnet_selector_terms, node_class.security_group_selector_terms) == (discovery, discovery)
    assert node_class.ami_family is AmiFamily.AL2023
    assert node_class.ami_selector_terms == (SelectorTerm(alias="al2023@latest"),)
    assert node_class.role == "KarpenterNodeRole"
    assert node_class.block_devices == (BlockDevice("/dev/sda1", volume_size_gib=100),)
    assert node_class.user_data.startswith("#!/bin/bash\n")


def test_the_first_articles_odd_spellings_are_each_told(policy: Policy) -> None:
    told = [each.message for each in policy.warnings if each.position.file == "article-a-v1.yaml"]
    for old, modern in (
        ("karpenter.k8s.aws/instance-capacity-type", "karpenter.sh/capacity-type"),
        ("spec.disruption.expireAfter", "spec.template.spec.expireAfter"),
        ("securityGroupSelector ", "securityGroupSelectorTerms"),
        ("subnetSelector ", "subnetSelectorTerms"),
        ("amiFamily without amiSelectorTerms", "al2023@latest"),
        ("/dev/sda1", "/dev/xvda"),
    ):
        assert [message for message in told if old in message and modern in message], (old, told)


def test_pools_without_a_class_get_the_environments_with_a_warning(policy: Policy) -> None:
    for name in ("gpu-core", "gpu-elastic"):
        pool = policy.node_pool(name)
        assert pool is not None
        assert pool.node_class == "gpu-nodeclass"
    assert warned(policy, "article-a-pools.yaml") == Counter({"missing-node-class": 2, "old-spelling": 2})


def test_pools_without_a_class_are_errors_where_no_environment_names_one(files: Files) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_policy(files, builders.environment())
    errors = [each for each in caught.value.diagnostics if each.severity.value == "error"]
    assert [each.rule for each in errors] == ["missing-node-class"] * 2
    assert all("the stack file names no default node class" in each.message for each in errors)


def test_the_workload_is_passed_over(policy: Policy) -> None:
    assert warned(policy, "article-a-workload.yaml") == Counter({"not-a-policy": 2})


def test_the_second_articles_v1beta1_means_what_its_author_meant(policy: Policy) -> None:
    pool, node_class = policy.node_pool("gpu-inference-nodepool"), policy.node_class("gpu-optimized-nodeclass")
    assert pool is not None
    assert node_class is not None
    assert pool.node_class == node_class.name
    assert pool.disruption.consolidation_policy is ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
    assert pool.expire_after == timedelta(hours=720)
    assert node_class.ami_family is AmiFamily.AL2
    assert node_class.ami_selector_terms == (SelectorTerm(id="ami-0123456789abcdef0"),)
    assert node_class.block_devices == (
        BlockDevice("/dev/xvda", volume_size_gib=200, iops=5000, throughput_mib_per_s=500, is_root=True),
    )
    rules = warned(policy, "article-b-v1beta1.yaml")
    assert (rules["old-api-version"], rules["old-spelling"]) == (2, 2)


def test_what_can_never_match_is_linted(policy: Policy) -> None:
    catalog = build_catalog("us-east-1", {"us-east-1b": "use1-az1"}, read_catalog_data(), Pricing())
    found = {(each.rule, each.position.file): each for each in lint(policy, catalog)}
    assert set(found) == {
        ("value-never-matches", "article-a-v1.yaml"),
        ("label-promises-another-gpu", "article-a-v1.yaml"),
        ("gpu-pool-open", "article-b-v1beta1.yaml"),
    }
    never = found["value-never-matches", "article-a-v1.yaml"]
    assert never.position.source_line[never.position.column - 1 :].startswith("h100")
    assert "instance-category p" in never.message
    promise = found["label-promises-another-gpu", "article-a-v1.yaml"]
    assert "promises an l40s, but the pool permits a10g too" in promise.message


def test_the_articles_files_and_ours_mean_the_same() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"the articles' own manifests are not at hand: there is no folder {FOLDER}")
    environment = builders.environment(default_node_class="gpu-nodeclass")
    theirs = load_policy([(file.name, file.read_bytes()) for file in sorted(FOLDER.glob("*.yaml"))], environment)
    ours = load_policy([(name, text.encode()) for name, text in OWN.items()], environment)
    assert Counter(each.rule for each in theirs.warnings) == Counter(each.rule for each in ours.warnings)
    assert [pool.requirements for pool in theirs.node_pools] == [pool.requirements for pool in ours.node_pools]
