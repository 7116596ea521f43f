"""EC2 instances as the engine launches them, for tests of what joins a cluster: user data and tags included."""

from __future__ import annotations

from typing import Any

from engine.model import labels as keys
from engine.model.environment import Cluster
from engine.model.policy import NodeClass, NodePool
from engine.policy.user_data import user_data
from engine.sandbox.control_plane import Plane


def launch(
    ec2: Any,
    plane: Plane,
    environment: str,
    pool: NodePool,
    node_class: NodeClass,
    instance_type: str,
    claim: str = "claim-1",
    zone: str = "us-east-1b",
) -> str:
    """One on-demand instance's id."""
    joined = Cluster(environment, plane.endpoint, plane.certificate_authority, "10.100.0.0/16")
    tags = {keys.TAG_ENVIRONMENT: environment, keys.TAG_CLAIM: claim}
    made = ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        InstanceType=instance_type,
        Placement={"AvailabilityZone": zone},
        UserData=user_data(pool, node_class, joined, keys.ON_DEMAND),
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}],
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": name, "Value": value} for name, value in tags.items()]}
        ],
    )
    return str(made["Instances"][0]["InstanceId"])
