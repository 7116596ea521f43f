"""How many EBS volumes a type takes, as AWS documents it, less what the node itself has."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.catalog.attach_limits import volume_limit
from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.policy import AmiFamily
from tests.builders import instance_type, node_class


def of(name: str, gpus: int = 0, **more: object) -> InstanceType:
    accelerators = {"nvidia.com/gpu": gpus} if gpus else {}
    return evolve(instance_type(name, vcpus=4, memory_gib=16, accelerators=accelerators), **more)  # type: ignore[arg-type]


# Of each limit one volume is the node's root; of a shared one a second network interface is off as well.
CASES = [
    pytest.param(of("m5.large"), 27 - 2, id="attachments shared with interfaces"),
    pytest.param(of("m5.metal"), 31 - 2, id="bare metal that shares"),
    pytest.param(of("m5d.24xlarge", local_nvme_bytes=1), 27 - 8 - 2, id="an unknown number of instance store volumes"),
    pytest.param(of("g5.xlarge", gpus=1, local_nvme_bytes=1), 25 - 2, id="a GPU and an instance store volume"),
    pytest.param(of("g5.48xlarge", gpus=8, local_nvme_bytes=1), 9 - 2, id="eight GPUs"),
    pytest.param(of("g9.48xlarge", gpus=8), 27 - 8 - 2, id="GPUs of a family that no table has"),
    pytest.param(of("g6.xlarge", gpus=1), 32 - 1, id="volumes apart, a small size"),
    pytest.param(of("m7i-flex.large"), 32 - 1, id="volumes apart, the smallest"),
    pytest.param(of("r7i.16xlarge"), 48 - 1, id="volumes apart, 16xlarge"),
    pytest.param(of("c8g.24xlarge"), 64 - 1, id="volumes apart, 24xlarge"),
    pytest.param(of("r7iz.32xlarge"), 88 - 1, id="volumes apart, 32xlarge"),
    pytest.param(of("g7e.48xlarge", gpus=8), 128 - 1, id="volumes apart, 48xlarge"),
    pytest.param(of("m7i.metal-24xl"), 39 - 1, id="volumes apart, bare metal"),
    pytest.param(of("p5.48xlarge", gpus=8), 64 - 1, id="volumes apart, less than the size says"),
    pytest.param(of("p4d.24xlarge", gpus=8), 28 - 1, id="volumes apart, fewer than others"),
    pytest.param(of("m7g.large"), 27 - 2, id="a new family that shares"),
    pytest.param(of("p3.2xlarge", gpus=1, labels={keys.INSTANCE_HYPERVISOR: "xen"}), 39 - 1, id="Xen"),
]


@pytest.mark.parametrize(("kind", "limit"), CASES)
def test_a_type_takes_as_many_volumes_as_documented(kind: InstanceType, limit: int) -> None:
    assert volume_limit(kind, node_class()) == limit


def test_every_volume_of_the_node_itself_takes_one() -> None:
    # A Bottlerocket image has one for itself and one for pods.
    assert volume_limit(of("m5.large"), node_class(ami_family=AmiFamily.BOTTLEROCKET)) == 27 - 1 - 2
