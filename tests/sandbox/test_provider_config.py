"""The stand-in serves loopback endpoints and refuses everything else, saying what to do."""

import json

import pytest

from engine.sandbox.aws.config import ConfigError, config_failures, is_loopback, read_config
from engine.sandbox.aws.wire import UNKNOWN

EC2 = "http://127.0.0.1:5000"
GOOD = {"region": "us-east-1", "accessKey": "a", "secretKey": "b", "endpoints": json.dumps([{"ec2": EC2}])}


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.9.9.9", "http://localhost:4566", "http://[::1]:80"])
def test_these_addresses_are_this_machine(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://ec2.us-east-1.amazonaws.com",
        "http://10.0.0.1",
        "http://0.0.0.0:5000",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://user@evil.com:80",
        "127.0.0.1:5000",
        "file:///etc",
        "http://169.254.169.254",
        "http://[::2]",
        "",
    ],
)
def test_these_addresses_are_not(url: str) -> None:
    assert not is_loopback(url)


def test_values_that_are_no_text_come_as_json() -> None:
    config = read_config(
        {
            **GOOD,
            "endpoints": json.dumps([{"ec2": EC2}, {"iam": EC2}]),
            "maxRetries": "3",
            "defaultTags": json.dumps({"tags": {"a": "b"}}),
            "ignoreTags": json.dumps({"keys": ["x"], "keyPrefixes": ["k8s/"]}),
            "skipRequestingAccountId": "true",
        }
    )
    assert config.endpoints == {"ec2": EC2, "iam": EC2}
    assert (config.max_retries, config.default_tags, config.asks_account_id) == (3, {"a": "b"}, False)
    assert (config.ignored_keys, config.ignored_prefixes) == ({"x"}, ("k8s/",))


def test_without_endpoints_the_official_plugin_is_named_and_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match="pulumi plugin install resource aws") as refused:
        read_config({**GOOD, "endpoints": "[]"})
    assert "stand-in" in str(refused.value)


def test_one_endpoint_elsewhere_among_good_ones_is_enough_to_refuse() -> None:
    elsewhere = json.dumps([{"ec2": EC2, "iam": "https://iam.amazonaws.com"}])
    with pytest.raises(ConfigError, match=r"the iam endpoint https://iam\.amazonaws\.com is elsewhere"):
        read_config({**GOOD, "endpoints": elsewhere})


def test_everything_missing_is_said_at_once_and_the_environment_may_fill_in() -> None:
    with pytest.raises(ConfigError) as refused:
        read_config({"endpoints": "nonsense"}, environment={})
    assert {failure.property for failure in refused.value.failures} == {"endpoints", "region", "accessKey"}
    environment = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert read_config({"endpoints": GOOD["endpoints"]}, environment).region == "eu-west-1"


def test_a_configuration_that_is_not_known_yet_is_not_judged() -> None:
    assert config_failures({"endpoints": UNKNOWN}) == []


def test_secrets_do_not_show_when_a_configuration_is_printed() -> None:
    assert "hunter2" not in repr(read_config({**GOOD, "secretKey": "hunter2", "token": "hunter2"}))
