"""Values on Pulumi's wire come in plain, whatever they are wrapped in, and go out as the engine expects them."""

from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc

from engine.sandbox.aws.wire import UNKNOWN, decode, encode, has_unknown

MARKER = "4dabf18193072939515e22adb298388d"


def struct(value: dict[str, object]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(value)
    return made


def test_secrets_and_outputs_are_unwrapped_and_references_become_ids() -> None:
    sent = struct(
        {
            "secret": {MARKER: rpc._special_secret_sig, "value": {"inner": "x"}},
            "output": {MARKER: rpc._special_output_value_sig, "value": 7, "secret": True},
            "pending": {MARKER: rpc._special_output_value_sig},
            "vpc": {MARKER: rpc._special_resource_sig, "urn": "urn:x", "id": "vpc-1"},
            "unknown": rpc.UNKNOWN,
            "nothing": None,
        }
    )
    assert rpc._special_sig_key == MARKER
    assert decode(sent) == {
        "secret": {"inner": "x"},
        "output": 7,
        "pending": UNKNOWN,
        "vpc": "vpc-1",
        "unknown": UNKNOWN,
    }


def test_an_unknown_inside_is_found_and_goes_out_as_pulumis_marker() -> None:
    value = {"list": [{"deep": UNKNOWN}]}
    assert has_unknown(value)
    assert not has_unknown({"list": [1, {"deep": "x"}]})
    assert encode(value)["list"][0]["deep"] == rpc.UNKNOWN


values = st.recursive(
    st.booleans() | st.integers(-(2**50), 2**50) | st.text() | st.just(UNKNOWN),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values))
def test_what_goes_out_comes_back_the_same(properties: dict[str, object]) -> None:
    assert decode(encode(properties)) == properties
