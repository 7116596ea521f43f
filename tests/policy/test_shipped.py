"""What the project ships loads without an error and without a warning, in every environment that it ships."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
import yaml

from engine.catalog.build import build_catalog
from engine.model import labels
from engine.model.environment import Environment
from engine.model.policy import AmiFamily, Policy
from engine.observe.catalog_source import read_catalog_data
from engine.policy.launch_template import launch_template
from engine.policy.lint import lint
from engine.policy.load import load_policy
from engine.policy.stack_file import load_environment
from engine.sandbox.workload import WORKLOAD_TYPE, inference_pods

ROOT = Path(__file__).parents[2]
STACKS = ("sandbox", "sandbox-1000", "sandbox-real")


def shipped_environment(name: str) -> Environment:
    file = f"stacks/Pulumi.{name}.yaml"
    return load_environment(name, file, (ROOT / file).read_bytes())


def shipped_policy(environment: Environment) -> Policy:
    files = sorted(file for file in (ROOT / "policies").rglob("*.yaml") if not file.name.endswith(".test.yaml"))
    return load_policy([(str(file.relative_to(ROOT)), file.read_bytes()) for file in files], environment)


@pytest.mark.parametrize("name", STACKS)
def test_shipped_policies_have_nothing_to_tell(name: str) -> None:
    environment = shipped_environment(name)
    policy = shipped_policy(environment)
    catalog = build_catalog(environment.region, environment.network.zones, read_catalog_data(), environment.pricing)
    assert policy.warnings == ()
    assert lint(policy, catalog) == ()


def test_all_stack_files_are_tested() -> None:
    assert sorted(file.stem for file in (ROOT / "stacks").glob("*.yaml")) == [
        f"Pulumi.{name}" for name in sorted(STACKS)
    ]


def test_the_shipped_pools_are_what_the_readme_says() -> None:
    policy = shipped_policy(shipped_environment("sandbox"))
    assert [pool.name for pool in policy.node_pools] == [
        "general",
        "gpu-batch",
        "gpu-core",
        "gpu-elastic",
        "gpu-inference",
    ]
    gpus = {pool.name: pool.limits.get("nvidia.com/gpu") for pool in policy.node_pools}
    assert (gpus["gpu-core"], gpus["gpu-elastic"]) == (50, 100)
    capacity = {
        pool.name: next(each.values for each in pool.requirements if each.key == labels.CAPACITY_TYPE)
        for pool in policy.node_pools
    }
    assert capacity["gpu-core"] == ("on-demand",)
    assert set(capacity["gpu-elastic"]) == {"spot", "on-demand"}
    assert capacity["gpu-batch"] == ("spot",)
    core = policy.node_pool("gpu-core")
    assert core is not None
    assert core.base_nodes == 1


def test_the_shipped_classes_are_one_of_each_family_with_their_volumes() -> None:
    policy = shipped_policy(shipped_environment("sandbox"))
    modern, golden = policy.node_class("gpu-al2023"), policy.node_class("gpu-al2-golden")
    assert modern is not None
    assert golden is not None
    assert (modern.ami_family, golden.ami_family) == (AmiFamily.AL2023, AmiFamily.AL2)
    assert golden.ami_selector_terms[0].id == "ami-0123456789abcdef0"
    (volume,) = modern.block_devices
    assert (volume.volume_size_gib, volume.volume_type) == (100, "gp3")
    (volume,) = golden.block_devices
    assert (volume.volume_size_gib, volume.iops, volume.throughput_mib_per_s) == (200, 5000, 500)


def test_the_inference_deployment_fits_the_inference_pool_and_no_other() -> None:
    policy = shipped_policy(shipped_environment("sandbox"))
    (pod,) = inference_pods(1)
    selector = pod["spec"]["nodeSelector"]
    fitting = [pool.name for pool in policy.node_pools if selector.items() <= pool.labels.items()]
    assert fitting == ["gpu-inference"]


@pytest.mark.parametrize("tier", ["core", "elastic", "batch"])
def test_each_tier_of_the_sandboxs_pods_has_its_pool(tier: str) -> None:
    policy = shipped_policy(shipped_environment("sandbox"))
    (pool,) = [pool for pool in policy.node_pools if pool.labels.get(WORKLOAD_TYPE) == tier]
    assert [(taint.key, taint.value) for taint in pool.taints] == [(WORKLOAD_TYPE, tier)]


@pytest.mark.parametrize("name", STACKS)
def test_the_network_has_room_for_the_environments_nodes(name: str) -> None:
    environment = shipped_environment(name)
    addresses = ipaddress.ip_network(environment.network.cidr).num_addresses
    assert len(environment.network.zones) == 3
    # A subnet in each of three zones is a quarter of the range, less the five addresses that EC2 keeps.
    assert addresses // 4 - 5 > 1000


def test_the_larger_environment_differs_in_scale_alone() -> None:
    small, large = shipped_environment("sandbox"), shipped_environment("sandbox-1000")
    assert small.sandbox is not None
    assert large.sandbox is not None
    assert (small.sandbox.pods, large.sandbox.pods) == (200, 1000)
    policy = shipped_policy(large)
    for pool in policy.node_pools:
        raised = large.pool_limits(pool.name, pool.limits)
        assert all(raised[resource] > limit for resource, limit in pool.limits.items())
    assert small.network.zones == large.network.zones
    rules = {rule.name: rule.params for rule in shipped_policy(small).rules}
    for rule in policy.rules:
        assert all(value >= rules[rule.name][name] for name, value in rule.params.items())


@pytest.mark.parametrize("name", STACKS)
def test_every_shipped_pool_has_its_launch_templates(name: str) -> None:
    environment = shipped_environment(name)
    policy = shipped_policy(environment)
    names = set()
    for pool in policy.node_pools:
        node_class = policy.node_class(pool.node_class)
        assert node_class is not None
        template = launch_template(pool, node_class, environment, "ami-1", "spot", "nvidia-amd64")
        assert f'"{pool.name}' not in template.user_data
        assert f"karpenter.sh/nodepool={pool.name}" in template.user_data
        names.add(template.name)
    assert len(names) == len(policy.node_pools)


def test_shipped_files_are_plain_kubernetes_to_any_yaml_reader() -> None:
    for file in (ROOT / "policies").glob("*.yaml"):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            assert document["kind"] in ("NodePool", "EC2NodeClass")
            assert document["apiVersion"].endswith("/v1")
