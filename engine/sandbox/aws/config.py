"""The provider's configuration, and the refusal of everything that is not on this machine."""

import ipaddress
import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from engine.sandbox.aws.schema import Failure
from engine.sandbox.aws.wire import UNKNOWN, Properties, Value, has_unknown

DEFAULT_MAX_RETRIES = 25

WHAT_THIS_IS = "this is nodewright's stand-in for Pulumi's AWS plugin, which performs on loopback endpoints only"
WAY_OUT = (
    "a real account needs the official plugin: `pulumi plugin install resource aws 7.51.1`, then `nodewright doctor`"
)

# In the provider's inputs everything that is no string arrives as JSON text.
_JSON_OPTIONS = ("endpoints", "defaultTags", "ignoreTags", "maxRetries", "skipRequestingAccountId")


class ConfigError(Exception):
    """A configuration that cannot be used; `failures` name the property and the reason."""

    def __init__(self, failures: list[Failure]) -> None:
        super().__init__("; ".join(failure.reason for failure in failures))
        self.failures = failures


@frozen
class ProviderConfig:
    """What one `aws.Provider` says, as far as this stand-in heeds it."""

    region: str
    endpoints: Mapping[str, str]
    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    max_retries: int = DEFAULT_MAX_RETRIES
    default_tags: Mapping[str, str] = field(factory=dict)
    ignored_keys: frozenset[str] = frozenset()
    ignored_prefixes: tuple[str, ...] = ()
    asks_account_id: bool = True


def read_config(inputs: Properties, environment: Mapping[str, str] = os.environ) -> ProviderConfig:
    """The configuration in the provider's inputs. Raises ConfigError with everything that is wrong."""
    options, failures = _options(inputs)
    region = options.get("region") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        failures.append(Failure("region", "no region: set aws:region or AWS_REGION"))
    endpoints = _endpoints(options.get("endpoints"), failures)
    access_key = options.get("accessKey") or environment.get("AWS_ACCESS_KEY_ID")
    secret_key = options.get("secretKey") or environment.get("AWS_SECRET_ACCESS_KEY")
    if not access_key or not secret_key:
        reason = "no credentials: set aws:accessKey and aws:secretKey, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        failures.append(Failure("accessKey", f"{reason} (an emulator takes any)"))
    if failures:
        raise ConfigError(failures)
    ignored = options.get("ignoreTags") or {}
    return ProviderConfig(
        region=str(region),
        endpoints=endpoints,
        access_key=str(access_key),
        secret_key=str(secret_key),
        token=str(options.get("token") or environment.get("AWS_SESSION_TOKEN") or ""),
        max_retries=int(options.get("maxRetries", DEFAULT_MAX_RETRIES)),
        default_tags=dict((options.get("defaultTags") or {}).get("tags") or {}),
        ignored_keys=frozenset(ignored.get("keys") or ()),
        ignored_prefixes=tuple(ignored.get("keyPrefixes") or ()),
        asks_account_id=not options.get("skipRequestingAccountId", False),
    )


def config_failures(inputs: Properties) -> list[Failure]:
    """What is wrong with a configuration as far as it is known; nothing yet while parts are unknown."""
    if has_unknown(inputs):
        return []
    try:
        read_config(inputs)
    except ConfigError as error:
        return error.failures
    return []


def _options(inputs: Properties) -> tuple[dict[str, Any], list[Failure]]:
    options = {key: value for key, value in inputs.items() if value is not UNKNOWN}
    failures: list[Failure] = []
    for name in _JSON_OPTIONS:
        value = options.get(name)
        if isinstance(value, str):
            try:
                options[name] = json.loads(value)
            except ValueError:
                failures.append(Failure(name, f"{name}: expected JSON, got {value!r}"))
                del options[name]
    return options, failures


def _endpoints(value: Value, failures: list[Failure]) -> dict[str, str]:
    """Service to address, from a list of objects of which the official plugin allows more than one."""
    listed = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    endpoints = {service: str(url) for one in listed for service, url in one.items() if url}
    if not endpoints:
        failures.append(Failure("endpoints", f"no endpoints are given, and {WHAT_THIS_IS}; {WAY_OUT}"))
    for service, url in endpoints.items():
        if not is_loopback(url):
            failures.append(
                Failure("endpoints", f"the {service} endpoint {url} is elsewhere, and {WHAT_THIS_IS}; {WAY_OUT}")
            )
    return endpoints


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine by its own words: 127.0.0.0/8, ::1 or localhost, never by DNS."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https"):
            return False
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
