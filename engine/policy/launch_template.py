"""A pool's launch templates: everything that boots, named by its content."""

from __future__ import annotations

import re

from attrs import evolve

from engine.model import labels
from engine.model.canonical import digest
from engine.model.catalog import InstanceType
from engine.model.document import LaunchTemplate
from engine.model.environment import Environment, NetworkMode
from engine.model.policy import NodeClass, NodePool
from engine.policy.user_data import user_data

# EC2's rule for names: 3 to 128 of these characters. IAM's: 64 at most.
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9().\-/_]+")
_NOT_IN_A_ROLE = re.compile(r"[^\w+=,.@-]+", re.ASCII)
_LONGEST_ENVIRONMENT, _DIGITS, _LONGEST_ROLE = 50, 10, 64


def image_variant(instance_type: InstanceType) -> str:
    """Which of a family's images the type boots, such as ``nvidia-amd64``.

    The rule is Karpenter's (pkg/providers/amifamily/types.go): the NVIDIA image for NVIDIA's GPUs, a fraction of one
    included, the Neuron image for AWS's accelerators, the standard one for everything else.
    """
    if instance_type.labels.get(labels.INSTANCE_GPU_MANUFACTURER) == "nvidia":
        kind = "nvidia"
    elif instance_type.labels.get(labels.INSTANCE_ACCELERATOR_MANUFACTURER) == "aws":
        kind = "neuron"
    else:
        kind = "standard"
    return f"{kind}-{instance_type.arch}"


def role_name(node_class: NodeClass, environment: Environment) -> str | None:
    """The IAM role that the environment makes for the class, or None when what the class names exists already.

    A class that names nothing gets the environment's own role. A role that it names is made where the environment
    owns its network, and is looked up where the network exists; an instance profile that it names always exists.
    """
    if node_class.instance_profile is not None:
        return None
    if node_class.role is not None:
        return node_class.role if environment.network.mode is NetworkMode.OWNED else None
    name = _NOT_IN_A_ROLE.sub("-", f"nodewright-{environment.name}-node")
    if len(name) <= _LONGEST_ROLE:
        return name
    return f"{name[: _LONGEST_ROLE - _DIGITS - 1]}-{digest(name)[:_DIGITS]}"


def launch_template(
    pool: NodePool,
    node_class: NodeClass,
    environment: Environment,
    image_id: str,
    capacity_type: str,
    variant: str,
) -> LaunchTemplate:
    """The template of a pool's nodes of one capacity type and image variant.

    It has no subnet and no security group: those are a claim's. A role that exists already is taken to have an
    instance profile of its own name, as the console and eksctl make them.
    """
    role = role_name(node_class, environment)
    unnamed = LaunchTemplate(
        name="",
        node_pool=pool.name,
        node_class=node_class.name,
        image_id=image_id,
        user_data=user_data(pool, node_class, environment.cluster, capacity_type, held=environment.holds_new_nodes),
        block_devices=node_class.block_devices,
        metadata_options=node_class.metadata_options,
        role=role,
        instance_profile=(node_class.instance_profile or node_class.role) if role is None else None,
        tags={**environment.tags, **node_class.tags},
        detailed_monitoring=node_class.detailed_monitoring,
    )
    environment_name = environment.name[:_LONGEST_ENVIRONMENT]
    name = f"{environment_name}-{pool.name}-{digest((unnamed, variant))[:_DIGITS]}"
    return evolve(unnamed, name=_NOT_IN_A_NAME.sub("-", name))
