"""Everything that boots: user data that joins the cluster, named by its content."""

from __future__ import annotations

import email
import shlex
from typing import Any

import pytest
import yaml
from attrs import evolve

from engine.model import labels
from engine.model.constraint import Taint, TaintEffect
from engine.model.document import LaunchTemplate
from engine.model.environment import Environment, NetworkMode
from engine.model.policy import AmiFamily, Kubelet, NodeClass
from engine.model.quantity import Resources
from engine.policy.launch_template import image_variant, launch_template, role_name
from engine.policy.mime import MalformedUserData
from engine.policy.user_data import MAX_USER_DATA_BYTES
from tests import builders
from tests.policy.texts import CLASS, POOL, findings_of, rules

POOL_VALUE = builders.node_pool(
    "gpu",
    node_class="gpu-nodes",
    labels={"team": "search"},
    taints=(Taint("nvidia.com/gpu", "", TaintEffect.NO_SCHEDULE),),
    startup_taints=(Taint("driver", "missing", TaintEffect.NO_EXECUTE),),
)
AL2023 = builders.node_class("gpu-nodes")
AL2 = evolve(AL2023, ami_family=AmiFamily.AL2)
KUBELET = Kubelet(
    max_pods=42,
    pods_per_core=3,
    system_reserved=Resources({"cpu": 100, "memory": 2**30}),
    kube_reserved={"memory": "1Gi", "cpu": "80m"},
    eviction_hard={"memory.available": "5%"},
    cluster_dns=("10.0.0.53",),
)


def template(node_class: NodeClass, capacity_type: str = "spot", **environment: object) -> LaunchTemplate:
    where = builders.environment("prod", **environment)
    return launch_template(POOL_VALUE, node_class, where, "ami-1", capacity_type, "nvidia-amd64")


def parts(user_data: str) -> list[tuple[str, str]]:
    """What cloud-init would see: content types and contents."""
    message = email.message_from_bytes(user_data.encode())
    assert message.is_multipart()
    assert not message.defects
    found = []
    for part in message.walk():
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            found.append((part.get_content_type(), content.decode()))
    return found


def node_config(node_class: NodeClass, capacity_type: str = "spot") -> Any:
    content_type, content = parts(template(node_class, capacity_type).user_data)[-1]
    assert content_type == "application/node.eks.aws"
    return yaml.safe_load(content)


def bootstrap(node_class: NodeClass) -> list[str]:
    content_type, content = parts(template(node_class).user_data)[-1]
    assert content_type == "text/x-shellscript"
    assert content.startswith("#!/bin/bash\n")
    words = shlex.split(content.replace("\\\n", " "), comments=True)
    return words[words.index("/etc/eks/bootstrap.sh") :]


def test_a_node_of_al2023_joins_by_a_node_config() -> None:
    config = node_config(AL2023)
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert config["spec"]["cluster"] == {
        "name": "cluster",
        "apiServerEndpoint": "https://127.0.0.1:6443",
        "certificateAuthority": "dGVzdA==",
        "cidr": "10.100.0.0/16",
    }
    assert config["spec"]["kubelet"]["config"] == {
        "clusterDNS": ["10.100.0.10"],
        "registerWithTaints": [
            {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
            {"key": "driver", "value": "missing", "effect": "NoExecute"},
        ],
    }


@pytest.mark.parametrize("capacity_type", ["spot", "on-demand"])
def test_a_node_labels_itself_with_pool_class_capacity_type_and_the_pools_labels(capacity_type: str) -> None:
    (flag,) = node_config(AL2023, capacity_type)["spec"]["kubelet"]["flags"]
    name, _, pairs = flag.partition("=")
    assert name == "--node-labels"
    assert dict(pair.split("=") for pair in pairs.split(",")) == {
        labels.NODE_POOL: "gpu",
        labels.NODE_CLASS: "gpu-nodes",
        labels.CAPACITY_TYPE: capacity_type,
        "team": "search",
    }


def test_kubelet_settings_go_into_the_node_config() -> None:
    spec = node_config(evolve(AL2023, kubelet=KUBELET, instance_store_raid0=True))["spec"]
    config = spec["kubelet"]["config"]
    del config["registerWithTaints"]
    assert config == {
        "clusterDNS": ["10.0.0.53"],
        "maxPods": 42,
        "podsPerCore": 3,
        "systemReserved": {"cpu": "100m", "memory": "1073741824"},
        "kubeReserved": {"cpu": "80m", "memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
    }
    assert spec["instance"] == {"localStorage": {"strategy": "RAID0"}}


def test_a_node_of_al2_joins_by_the_bootstrap_script() -> None:
    assert bootstrap(AL2) == [
        "/etc/eks/bootstrap.sh",
        "cluster",
        "--apiserver-endpoint",
        "https://127.0.0.1:6443",
        "--b64-cluster-ca",
        "dGVzdA==",
        "--dns-cluster-ip",
        "10.100.0.10",
        "--kubelet-extra-args",
        "--node-labels=karpenter.k8s.aws/ec2nodeclass=gpu-nodes,karpenter.sh/capacity-type=spot,karpenter.sh/nodepool=gpu"
        ",team=search --register-with-taints=nvidia.com/gpu=:NoSchedule,driver=missing:NoExecute",
    ]


def test_kubelet_settings_go_into_the_bootstrap_script() -> None:
    words = bootstrap(evolve(AL2, kubelet=KUBELET, instance_store_raid0=True))
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options["--use-max-pods"] == "false"
    assert options["--local-disks"] == "raid0"
    assert options["--dns-cluster-ip"] == "10.0.0.53"
    assert options["--kubelet-extra-args"].split()[2:] == [
        "--max-pods=42",
        "--pods-per-core=3",
        "--system-reserved=cpu=100m,memory=1073741824",
        "--kube-reserved=cpu=80m,memory=1Gi",
        "--eviction-hard=memory.available<5%",
    ]


def test_a_cluster_of_ipv6_services_is_joined() -> None:
    cluster = evolve(builders.environment().cluster, service_cidr="fd00:1::/108")
    data = template(AL2, cluster=cluster).user_data
    assert "--ip-family ipv6" in data
    assert "--service-ipv6-cidr fd00:1::/108" in data
    assert "--dns-cluster-ip fd00:1::a" in data


OWN_MIME = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
echo one ü

--B
Content-Type: text/cloud-config

packages: [jq]
--B--
"""


@pytest.mark.parametrize("family", [AmiFamily.AL2023, AmiFamily.AL2])
@pytest.mark.parametrize(
    ("own", "types", "content"),
    [
        ("#!/bin/sh\necho hé\n", ["text/x-shellscript"], "echo hé"),
        ("echo no shebang\n", ["text/x-shellscript"], "echo no shebang"),
        ("#cloud-config\npackages: [jq]\n", ["text/cloud-config"], "packages: [jq]"),
        (
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n",
            ["application/node.eks.aws"],
            "kind: NodeConfig",
        ),
        (OWN_MIME, ["text/x-shellscript", "text/cloud-config"], "echo one ü"),
        ("  \n", [], ""),
    ],
)
def test_the_classes_own_user_data_comes_first_and_whole(
    family: AmiFamily, own: str, types: list[str], content: str
) -> None:
    found = parts(template(evolve(AL2023, ami_family=family, user_data=own)).user_data)
    assert [content_type for content_type, _ in found[:-1]] == types
    assert content in "".join(text for _, text in found[:-1])
    assert len(found) == len(types) + 1


def test_no_part_can_end_the_document_early() -> None:
    first = template(AL2023).user_data
    boundary = first.split('boundary="')[1].split('"')[0]
    own = f"#!/bin/sh\ncat <<X\n--{boundary}--\nX\n"
    found = parts(template(evolve(AL2023, user_data=own)).user_data)
    assert len(found) == 2
    assert f"--{boundary}--" in found[0][1]


def test_a_custom_images_user_data_is_left_as_it_is() -> None:
    assert template(evolve(AL2023, ami_family=AmiFamily.CUSTOM, user_data="anything ü")).user_data == "anything ü"


def test_broken_mime_is_refused() -> None:
    broken = OWN_MIME.replace("--B", "--C")
    with pytest.raises(MalformedUserData):
        template(evolve(AL2023, user_data=broken))
    indented = "".join(f"    {line}\n" for line in broken.splitlines())
    found = findings_of(POOL, f"{CLASS}  userData: |\n{indented}", environment=builders.environment())
    assert "bad-user-data" in rules(found)


def test_user_data_above_ec2s_limit_is_an_error_that_names_the_class() -> None:
    def told(size: int) -> list[str]:
        found = findings_of(POOL, f"{CLASS}  userData: {'x' * size}\n", environment=builders.environment())
        return [each.message for each in found if each.rule == "user-data-too-large"]

    assert told(MAX_USER_DATA_BYTES - 2000) == []
    (message,) = told(MAX_USER_DATA_BYTES)
    assert "gpu-nodes" in message


# --- names


def test_the_same_content_has_the_same_name_and_other_content_another() -> None:
    base = template(AL2023)
    assert template(AL2023) == base
    others = [
        template(evolve(AL2023, user_data="#!/bin/sh\n")),
        template(evolve(AL2023, detailed_monitoring=True)),
        template(evolve(AL2023, tags={"a": "b"})),
        template(AL2023, capacity_type="on-demand"),
        template(AL2023, tags={"c": "d"}),
        launch_template(POOL_VALUE, AL2023, builders.environment("prod"), "ami-2", "spot", "nvidia-amd64"),
    ]
    names = {each.name for each in [base, *others]}
    assert len(names) == len(others) + 1
    assert base.name.startswith("prod-gpu-")
    assert len(base.name) == len("prod-gpu-") + 10


@pytest.mark.parametrize("environment", ["x" * 100, "prod.eu", "a b/c"])
def test_a_name_keeps_ec2s_rules_whatever_the_environment_is_called(environment: str) -> None:
    pool = evolve(POOL_VALUE, name="p" * 63)
    where = builders.environment(environment)
    name = launch_template(pool, AL2023, where, "ami-1", "spot", "nvidia-amd64").name
    assert 3 <= len(name) <= 128
    assert all(letter.isalnum() or letter in "().-/_" for letter in name)


def test_tags_are_the_environments_and_the_classes() -> None:
    found = template(evolve(AL2023, tags={"b": "class"}), tags={"a": "env", "b": "env"}).tags
    assert found == {"a": "env", "b": "class"}


# --- roles


def existing() -> Environment:
    environment = builders.environment("prod")
    return evolve(environment, network=evolve(environment.network, mode=NetworkMode.EXISTING))


@pytest.mark.parametrize(
    ("fields", "environment", "made", "role", "profile"),
    [
        ({}, builders.environment("prod"), "nodewright-prod-node", "nodewright-prod-node", None),
        ({}, existing(), "nodewright-prod-node", "nodewright-prod-node", None),
        ({"role": "gpu"}, builders.environment("prod"), "gpu", "gpu", None),
        ({"role": "gpu"}, existing(), None, None, "gpu"),
        ({"instance_profile": "gpu"}, builders.environment("prod"), None, None, "gpu"),
        ({"instance_profile": "gpu"}, existing(), None, None, "gpu"),
    ],
)
def test_a_role_is_made_or_looked_up(
    fields: dict[str, object], environment: Environment, made: str | None, role: str | None, profile: str | None
) -> None:
    node_class = builders.node_class("gpu-nodes", **fields)
    assert role_name(node_class, environment) == made
    found = launch_template(POOL_VALUE, node_class, environment, "ami-1", "spot", "nvidia-amd64")
    assert (found.role, found.instance_profile) == (role, profile)


def test_the_role_of_an_environment_with_a_long_name_keeps_iams_limit() -> None:
    names = {role_name(AL2023, builders.environment("x" * 70 + end)) or "" for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 64 for name in names)


# --- images


@pytest.mark.parametrize(
    ("found", "variant"),
    [
        ({labels.INSTANCE_GPU_MANUFACTURER: "nvidia"}, "nvidia-amd64"),
        ({labels.INSTANCE_GPU_MANUFACTURER: "nvidia", labels.INSTANCE_GPU_COUNT: "0"}, "nvidia-amd64"),
        ({labels.INSTANCE_ACCELERATOR_MANUFACTURER: "aws"}, "neuron-amd64"),
        ({labels.INSTANCE_ACCELERATOR_MANUFACTURER: "habana"}, "standard-amd64"),
        ({labels.INSTANCE_GPU_MANUFACTURER: "amd"}, "standard-amd64"),
        ({}, "standard-amd64"),
    ],
)
def test_a_type_boots_the_image_with_its_driver(found: dict[str, str], variant: str) -> None:
    kind = evolve(builders.G5_XLARGE, labels=found)
    assert image_variant(kind) == variant
    assert image_variant(evolve(kind, arch="arm64")) == variant.replace("amd64", "arm64")
