"""Claims and the launch templates that they boot from, each beneath the component of its pool."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from engine.converge import urns
from engine.model import labels
from engine.model.claim import Claim
from engine.model.document import LaunchTemplate
from engine.model.policy import BlockDevice

# A launch template is named by its content, so it never gets a second version.
ONLY_VERSION = "1"


class GpuNodeSet(pulumi.ComponentResource):
    """The tree's node for one pool: its launch templates and its claims."""

    def __init__(self, node_pool: str) -> None:
        super().__init__(urns.NODE_SET, node_pool)


def declare_template(
    template: LaunchTemplate,
    node_set: GpuNodeSet,
    provider: pulumi.ProviderResource,
    after: Sequence[pulumi.Resource],
) -> aws.ec2.LaunchTemplate:
    """`after` is what a machine of this template needs to join: its role's profile, policies, access entry."""
    profile = template.instance_profile or template.role
    return aws.ec2.LaunchTemplate(
        template.name,
        name=template.name,
        image_id=template.image_id,
        user_data=base64.b64encode(template.user_data.encode()).decode(),
        iam_instance_profile=aws.ec2.LaunchTemplateIamInstanceProfileArgs(name=profile) if profile else None,
        block_device_mappings=[_block_device(device) for device in template.block_devices],
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint=template.metadata_options.http_endpoint,
            http_protocol_ipv6=template.metadata_options.http_protocol_ipv6,
            http_put_response_hop_limit=template.metadata_options.http_put_response_hop_limit,
            http_tokens=template.metadata_options.http_tokens,
        ),
        tags=dict(template.tags),
        # An instance's tags are its claim's; its volumes have nobody else to name them.
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type="volume", tags=dict(template.tags))
        ]
        if template.tags
        else None,
        opts=pulumi.ResourceOptions(parent=node_set, provider=provider, depends_on=list(after)),
    )


def declare_claim(
    claim: Claim,
    node_set: GpuNodeSet,
    provider: pulumi.ProviderResource,
    *,
    subnet_id: pulumi.Input[str],
    security_group_ids: Sequence[pulumi.Input[str]],
    after: Sequence[pulumi.Resource],
    detailed_monitoring: bool,
    adopt_id: str | None,
) -> aws.ec2.Instance:
    """Declare one machine exactly as its claim records it; with `adopt_id` take over the instance that runs already.

    Nothing is protected, retained or ignored here: each of these leaves or removes a machine outside the budget.
    """
    inputs = claim.inputs
    return aws.ec2.Instance(
        claim.name,
        launch_template=aws.ec2.InstanceLaunchTemplateArgs(name=inputs.launch_template, version=ONLY_VERSION),
        instance_type=inputs.instance_type,
        subnet_id=subnet_id,
        vpc_security_group_ids=list(security_group_ids),
        associate_public_ip_address=inputs.associate_public_ip_address,
        instance_market_options=_spot() if inputs.capacity_type == labels.SPOT else None,
        capacity_reservation_specification=_reservation(inputs.capacity_reservation_id),
        # Left out, the provider would tell EC2 `false`, over what the template says.
        monitoring=True if detailed_monitoring else None,
        tags=dict(inputs.tags),
        opts=pulumi.ResourceOptions(parent=node_set, provider=provider, depends_on=list(after), import_=adopt_id),
    )


def _spot() -> aws.ec2.InstanceInstanceMarketOptionsArgs:
    return aws.ec2.InstanceInstanceMarketOptionsArgs(
        market_type="spot",
        spot_options=aws.ec2.InstanceInstanceMarketOptionsSpotOptionsArgs(
            instance_interruption_behavior="terminate", spot_instance_type="one-time"
        ),
    )


def _reservation(reservation_id: str | None) -> aws.ec2.InstanceCapacityReservationSpecificationArgs | None:
    if reservation_id is None:
        return None
    target = aws.ec2.InstanceCapacityReservationSpecificationCapacityReservationTargetArgs(
        capacity_reservation_id=reservation_id
    )
    return aws.ec2.InstanceCapacityReservationSpecificationArgs(capacity_reservation_target=target)


def _block_device(device: BlockDevice) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=device.device_name,
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            # The provider wants these two as text.
            delete_on_termination=_text(device.delete_on_termination),
            encrypted=None if device.encrypted is None else _text(device.encrypted),
            iops=device.iops,
            kms_key_id=device.kms_key_id,
            snapshot_id=device.snapshot_id,
            throughput=device.throughput_mib_per_s,
            volume_size=device.volume_size_gib,
            volume_type=device.volume_type,
        ),
    )


def _text(value: bool) -> str:
    return "true" if value else "false"
