"""The AWS providers of an environment: one for launches, one for everything else."""

from __future__ import annotations

import importlib.metadata
import json

import pulumi

from engine.converge import urns
from engine.model.environment import Environment

# Enough for a dropped connection, and over in a second when AWS has no capacity.
LAUNCH_RETRIES = 3
_SERVICES = ("ec2", "iam", "eks", "ssm", "sts", "sqs", "events")


def provider_inputs(environment: Environment) -> dict[str, str]:
    """The providers' common inputs: of the environment alone, so that nothing ambient changes a provider.

    In the wire's form, where everything that is no text is JSON.
    """
    inputs = {"region": environment.region, "skipRegionValidation": "true"}
    if environment.endpoint_url is not None:
        inputs["endpoints"] = json.dumps([dict.fromkeys(_SERVICES, environment.endpoint_url)], sort_keys=True)
        # An emulator knows no account and no credentials, and a machine beside it may have an instance's own.
        for check in ("skipCredentialsValidation", "skipMetadataApiCheck", "skipRequestingAccountId"):
            inputs[check] = "true"
    return inputs


def declare_providers(environment: Environment) -> tuple[pulumi.ProviderResource, pulumi.ProviderResource]:
    """(everything else, launches).

    Made without the pulumi_aws package, whose import takes seconds, so that one more claim costs none of it.
    """
    return _provider(urns.EVERYTHING_ELSE, provider_inputs(environment)), declare_launches(environment)


def declare_launches(environment: Environment) -> pulumi.ProviderResource:
    """The launches' provider alone: all that a lane without a foundation needs."""
    inputs = {**provider_inputs(environment), "maxRetries": str(LAUNCH_RETRIES)}
    return _provider(urns.LAUNCHES, inputs)


def _provider(name: str, inputs: dict[str, str]) -> pulumi.ProviderResource:
    options = pulumi.ResourceOptions(version=importlib.metadata.version("pulumi_aws"))
    return pulumi.ProviderResource("aws", name, inputs, options)
