"""A stack file is one environment: every key, the defaults, and mistakes at their places."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engine.model.diagnostic import Diagnostic, InvalidInput
from engine.model.environment import Caps, Cluster, Environment, Network, NetworkMode, Pricing, Sandbox
from engine.model.money import UsdPerHour
from engine.model.quantity import Resources
from engine.model.rule import Enforcement
from engine.policy.stack_file import NODE_ROLE_POLICIES, load_environment
from tests.policy.texts import edited

SMALL = """\
config:
  nodewright:region: us-east-1
  nodewright:cluster:
    name: prod
    endpoint: https://prod.example.com
    certificateAuthority: dGVzdA==
    serviceCidr: 172.20.0.0/16
  nodewright:network:
    mode: owned
    zones: {us-east-1b: use1-az1, us-east-1c: use1-az2}
"""
FULL = """\
encryptionsalt: v1:abc
secretsprovider: passphrase
config:
  aws:region: us-east-1
  other:secret: {secure: abc}
  nodewright:region: us-east-1
  nodewright:cluster:
    name: prod
    endpoint: https://prod.example.com:6443
    certificateAuthority: dGVzdA==
    serviceCidr: 172.20.0.0/16
    kubeconfig: ~/.kube/config
    context: prod
    ownsAccessEntry: true
  nodewright:network:
    mode: existing
    cidr: 10.8.0.0/20
    zones: {us-east-1b: use1-az1}
  nodewright:policies: [policies, teams/search]
  nodewright:defaultNodeClass: gpu
  nodewright:limits: {gpu: {nvidia.com/gpu: 8, cpu: "1k"}}
  nodewright:caps: {launches: "5", removals: 0, addedUsdPerHour: 12.5}
  nodewright:pricing:
    overrides: {g5.xlarge/spot: 0.4, g5.xlarge: "1.006"}
    discounts: {on-demand: 0.2}
    file: prices.csv
  nodewright:tags: {cost: "1"}
  nodewright:nodeRolePolicies: ["arn:aws:iam::123456789012:policy/Nodes"]
  nodewright:endpoint: http://127.0.0.1:5000
  nodewright:sandbox: {pods: 20, seed: 7, manifests: [pods.yaml]}
  nodewright:store: /var/lib/nodewright
  nodewright:backend: file:///var/lib/pulumi
  nodewright:params: {spend: {mostPerHour: 12.5, count: 3, isOn: true, tier: gold}, gold-on-nvlink: {}}
  nodewright:enforcement: {spend: warn, gold-on-nvlink: audit}
  nodewright:celEngine: cel-python
"""


def loaded(text: str) -> Environment:
    return load_environment("prod", "stacks/Pulumi.prod.yaml", text.encode())


def errors_of(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InvalidInput) as caught:
        loaded(text)
    return caught.value.diagnostics


def test_every_key_has_its_meaning() -> None:
    assert loaded(FULL) == Environment(
        name="prod",
        region="us-east-1",
        cluster=Cluster(
            name="prod",
            endpoint="https://prod.example.com:6443",
            certificate_authority="dGVzdA==",
            service_cidr="172.20.0.0/16",
            kubeconfig="~/.kube/config",
            context="prod",
            owns_access_entry=True,
        ),
        network=Network(NetworkMode.EXISTING, {"us-east-1b": "use1-az1"}, "10.8.0.0/20", {}),
        policies=("policies", "teams/search"),
        default_node_class="gpu",
        limits={"gpu": Resources({"nvidia.com/gpu": 8, "cpu": 1_000_000})},
        caps=Caps(launches=5, removals=0, added_usd_per_hour=UsdPerHour.parse("12.5")),
        pricing=Pricing(
            overrides={"g5.xlarge/spot": UsdPerHour.parse("0.4"), "g5.xlarge": UsdPerHour.parse("1.006")},
            discounts={"on-demand": Decimal("0.2")},
            file="prices.csv",
        ),
        tags={"cost": "1"},
        node_role_policies=("arn:aws:iam::123456789012:policy/Nodes",),
        endpoint_url="http://127.0.0.1:5000",
        sandbox=Sandbox(pods=20, seed=7, manifests=("pods.yaml",)),
        store="/var/lib/nodewright",
        backend="file:///var/lib/pulumi",
        params={"spend": {"mostPerHour": 12.5, "count": 3, "isOn": True, "tier": "gold"}, "gold-on-nvlink": {}},
        enforcement={"spend": Enforcement.WARN, "gold-on-nvlink": Enforcement.AUDIT},
        cel_engine="cel-python",
    )


def test_what_a_stack_says_of_rules_knows_its_place() -> None:
    places = loaded(FULL).rule_positions
    assert {key: (place.line, place.column) for key, place in places.items()} == {
        "params[spend]": (33, 23),
        "params[spend][mostPerHour]": (33, 44),
        "params[spend][count]": (33, 57),
        "params[spend][isOn]": (33, 66),
        "params[spend][tier]": (33, 78),
        "params[gold-on-nvlink]": (33, 85),
        "enforcement[spend]": (34, 28),
        "enforcement[gold-on-nvlink]": (34, 41),
    }


@pytest.mark.parametrize(
    ("value", "queue", "is_made"),
    [
        ("gpu-interruptions", "gpu-interruptions", False),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/managed",) * 2 + (False,),
        ("managed", "nodewright-prod-interruptions", True),
    ],
)
def test_a_queue_is_one_that_exists_or_one_that_the_environment_makes(value: str, queue: str, is_made: bool) -> None:
    environment = loaded(f"{SMALL}  nodewright:interruptionQueue: {value}\n")
    assert (environment.interruption_queue, environment.owns_interruption_queue) == (queue, is_made)


@pytest.mark.parametrize("value", ["[1]", "{a: 1}", "null", ""])
def test_a_parameter_has_a_plain_value(value: str) -> None:
    (found,) = errors_of(f"{SMALL}  nodewright:params:\n    spend:\n      mostPerHour: {value}\n")
    assert (found.rule, found.position.line) == ("wrong-type", 13)


def test_an_environment_that_says_little_gets_sane_defaults() -> None:
    environment = loaded(SMALL)
    assert environment.policies == ("policies",)
    assert environment.caps == Caps()
    assert environment.node_role_policies == NODE_ROLE_POLICIES
    assert environment.network.discovery_tags == {"karpenter.sh/discovery": "prod"}
    assert (environment.sandbox, environment.endpoint_url, environment.default_node_class) == (None, None, None)


def test_one_folder_of_policies_may_be_a_plain_string() -> None:
    assert loaded(f"{SMALL}  nodewright:policies: teams\n").policies == ("teams",)


@pytest.mark.parametrize(
    ("old", "new", "rule", "caret", "hint"),
    [
        ("  nodewright:region: us-east-1\n", "", "missing-field", "config", ""),
        ("nodewright:region: us", "nodewright:regoin: us", "unknown-field", "nodewright:regoin", "nodewright:region"),
        ("nodewright:region: us", "region: us", "no-namespace", "region", "nodewright:region"),
        (
            "nodewright:region: us-east-1",
            "nodewright:region: {secure: x}",
            "encrypted",
            "nodewright:region",
            "--secret",
        ),
        ("region: us-east-1", "region: Virginia", "bad-value", "Virginia", "us-east-1"),
        ("region: us-east-1", "region: eu-west-1", "contradiction", "us-east-1b", "eu-west-1a"),
        ("config:", "config:\n  nodewright:run: {batchIdle: 2s}", "contradiction", "nodewright:run", "batchMax"),
        ("endpoint: https://", "endpoint: ", "bad-value", "prod.example.com", "https://"),
        ("name: prod", "name: my prod", "bad-value", "my prod", ""),
        ("dGVzdA==", "-----BEGIN", "bad-value", "-----BEGIN", "kubeconfig"),
        ("172.20.0.0/16", "172.20.0.1/16", "bad-value", "172.20.0.1/16", ""),
        ("172.20.0.0/16", "172.20.0.0/30", "out-of-range", "172.20.0.0/30", ""),
        ("serviceCidr", "serviceCIDR", "unknown-field", "serviceCIDR", "serviceCidr"),
        ("mode: owned", "mode: own", "unknown-value", "own", "owned"),
        ("mode: owned", "mode: owned\n    cidr: 10.0.0.0/8", "out-of-range", "10.0.0.0/8", "/16"),
        ("mode: owned", "mode: owned\n    cidr: 10.0.0.0", "out-of-range", "10.0.0.0", "/16"),
        ("us-east-1b: use1-az1, ", "us-east-1: use1-az1, ", "bad-value", "us-east-1:", "us-east-1b"),
        ("use1-az1", "az1", "bad-value", "az1", "use1-az1"),
        ("{us-east-1b: use1-az1, us-east-1c: use1-az2}", "{}", "missing-field", "zones", "use1-az1"),
        ("config:", "config:\n  nodewright:caps: {launches: -1}", "out-of-range", "-1", ""),
        ("config:", "config:\n  nodewright:caps: {launches: many}", "wrong-type", "many", ""),
        ("config:", "config:\n  nodewright:caps: {addedUsdPerHour: cheap}", "bad-price", "cheap", ""),
        ("config:", "config:\n  nodewright:pricing: {discounts: {spot: 20}}", "bad-price", "20", "0.2"),
        ("config:", "config:\n  nodewright:pricing: {discounts: {spott: 0.2}}", "unknown-value", "spott", "spot"),
        ("config:", "config:\n  nodewright:pricing: {overrides: {g5.xlarge/cheap: 1}}", "bad-value", "g5", "g5.xlarge"),
        ("config:", "config:\n  nodewright:limits: {gpu: {cpu: 10x}}", "bad-quantity", "10x", ""),
        ("config:", "config:\n  nodewright:tags: {nodewright.dev/claim: x}", "reserved-tag", "nodewright.dev", ""),
        ("config:", "config:\n  nodewright:sandbox: {seed: 1}", "missing-field", "nodewright:sandbox", ""),
        ("config:", "config:\n  nodewright:nodeRolePolicies: [Admin]", "bad-value", "Admin", "arn:"),
        (
            "config:",
            "config:\n  nodewright:store: s3://bucket/a",
            "not-implemented",
            "s3://bucket/a",
            "all runners share",
        ),
        ("config:", "config:\n  nodewright:store: GS://b", "not-implemented", "GS://b", "docs/live.md"),
        ("config:", "config:\n  nodewright:store: file:///data/nw", "bad-value", "file:///data/nw", "write /data/nw"),
        ("config:", "config:\n  nodewrigth:caps: {}", "no-namespace", "nodewrigth:caps", "nodewright"),
    ],
)
def test_a_wrong_key_is_an_error_with_the_caret_on_it(old: str, new: str, rule: str, caret: str, hint: str) -> None:
    found = next(each for each in errors_of(edited(SMALL, old, new).text) if each.rule == rule)
    assert found.position.file == "stacks/Pulumi.prod.yaml"
    assert found.position.source_line[found.position.column - 1 :].startswith(caret)
    assert hint in found.hint


@pytest.mark.parametrize(
    ("text", "rule"),
    [("", "missing-field"), ("config: []\n", "missing-field"), ("a: 1\n", "missing-field"), ("a: [\n", "yaml-syntax")],
)
def test_a_file_without_our_keys_is_an_error_that_says_what_to_begin_with(text: str, rule: str) -> None:
    assert [each.rule for each in errors_of(text)] == [rule]


def test_a_second_document_is_an_error() -> None:
    assert "too-many" in [each.rule for each in errors_of(f"{SMALL}---\na: 1\n")]
