"""The launch templates that claims boot from."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from engine.converge.claims import GpuNodeSet
from engine.model.document import LaunchTemplate
from engine.model.policy import BlockDevice


def declare_template(
    template: LaunchTemplate,
    node_set: GpuNodeSet,
    provider: pulumi.ProviderResource,
    *,
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
