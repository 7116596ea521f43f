"""Where our verdict differs from Karpenter's API on purpose: the list that docs/leniencies.md tells in words.

A leniency explains one cause of the API server's refusal of what we read, a strictness one error of ours about what
the API server accepts. What no entry explains is a mistake of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from tests.cluster.karpenter_verdicts import Ours, Theirs

# The API server adds it wherever it leaves out its CEL validations; it is no cause of its own.
_NO_CAUSE = "some validation rules were not checked because the object was invalid"
SILENT = ""


@frozen
class Difference:
    """``finding`` is the rule of ours that comes with it, SILENT for none; ``text`` a pattern of what it explains."""

    finding: str
    text: str


_TERMS = r"spec\.(amiS|subnetS|securityGroupS)electorTerms"
_UNKNOWN = r'unknown field \\?"'
_NUMBER_AS_AMOUNT = r"limits\..*(\"number\"|must validate at least one schema)|Checked value must be of type integer"
# What Karpenter's API refuses and we read: the text is of its cause, the finding our warning.
LENIENCIES: Mapping[str, Difference] = {
    "unquoted": Difference(
        "unquoted",
        r'must be of type string: "(integer|number|boolean)"'
        r"|cannot unmarshal (number|bool) into Go struct field ObjectMeta\.(name|labels|annotations)"
        rf"|{_NUMBER_AS_AMOUNT}",
    ),
    "no-consolidate-after": Difference("not-karpenters", r"^spec\.disruption\.consolidateAfter: Required value"),
    "never-consolidate": Difference("not-karpenters", r'consolidationPolicy: Unsupported value: "Never"'),
    "budget-of-expiry": Difference("not-karpenters", r'reasons\[\d+\]: Unsupported value: "Expired"'),
    "empty-taint-value": Difference("not-karpenters", r'aints\[\d+\]\.value: Invalid value: "": .* should match'),
    "no-node-class": Difference("missing-node-class", r"nodeClassRef: Required value"),
    "no-image-terms": Difference("old-spelling", r"^spec\.amiSelectorTerms: Required value"),
    "plain-selector": Difference("old-spelling", _UNKNOWN + r"spec\.subnetSelector\\?\""),
    "one-term-without-a-dash": Difference("old-spelling", _UNKNOWN + _TERMS + r"\.\w+"),
    "bare-term": Difference("old-spelling", _UNKNOWN + _TERMS + r"\[\d+\]\.[\w./]+"),
    "reference-by-api-version": Difference("old-spelling", _UNKNOWN + r".*nodeClassRef\.apiVersion"),
    "expiry-under-disruption": Difference("old-spelling", _UNKNOWN + r"spec\.disruption\.expireAfter"),
    "when-underutilized": Difference("old-spelling", r'Unsupported value: "WhenUnderutilized"'),
    "capacity-type-label": Difference("old-spelling", r'"karpenter\.k8s\.aws/instance-capacity-type": label domain'),
    "v1beta1": Difference("old-api-version", r'in version "v1beta1" cannot be handled'),
    "no-role": Difference(SILENT, r"^spec: Invalid value: must specify exactly one of \['role', 'instanceProfile'\]"),
    "written-by-the-api-server": Difference(SILENT, r"Go struct field ObjectMeta\.namespace"),
}
# What Karpenter's API accepts and we refuse: the text is of our message, the finding our error.
STRICTNESSES: Mapping[str, Difference] = {
    "not-implemented-field": Difference("not-implemented", r"^(?!spec\.kubelet).*Karpenter has this field"),
    "not-implemented-label": Difference("not-implemented", r"Karpenter knows the label"),
    "not-implemented-image": Difference("not-implemented", r"AMI family|images of"),
    "other-node-class-kind": Difference("not-implemented", r"^nodeClassRef\.(group|kind)"),
    "kubelet-not-implemented": Difference("not-implemented", r"^spec\.kubelet\."),
    "kubelet-unknown": Difference("unknown-field", r"^spec\.kubelet\."),
    "kubelet-type": Difference("wrong-type", r"^spec\.kubelet\."),
    "kubelet-range": Difference("out-of-range", r"^spec\.kubelet\."),
    "kubelet-amount": Difference("bad-quantity", r"^spec\.kubelet\."),
    "kubelet-resource": Difference("unknown-value", r"^spec\.kubelet\."),
    "kubelet-address": Difference("bad-value", r"^spec\.kubelet\."),
    "null-in-a-map": Difference("wrong-type", r"(tags|labels|annotations|limits).*found nothing"),
    "list-for-a-time": Difference("wrong-type", r"timeAdded: expected a string, found a list"),
    "no-spec": Difference("missing-field", r"^spec is missing"),
    "half-a-volume": Difference("missing-field", r"blockDeviceMappings\[\d+\]\.(deviceName|ebs) is missing"),
    "long-name": Difference("bad-name", r"is no name for this kind"),
    "label-syntax": Difference("bad-label", r"is no label (key|value)"),
    "annotation-syntax": Difference("bad-annotation", r"is no annotation's key"),
    "our-annotations": Difference("unknown-annotation", r"^nodewright\.dev/"),
    "our-annotations-values": Difference("bad-annotation", r"^nodewright\.dev/"),
    "our-annotations-on-static-pools": Difference("contradiction", r"keeps its replicas, so nodewright\.dev/"),
    "kubelets-labels": Difference("restricted-label", r"a kubelet may not set the label"),
    "own-label": Difference("contradiction", r"does not meet its requirement"),
    "duplicate-taint": Difference("duplicate-taint", r"is here twice"),
    "capacity-type": Difference("unknown-value", r"is no capacity type"),
    "class-of-no-file": Difference("unknown-node-class", r"which no file defines"),
    "long-duration": Difference("bad-duration", r"expireAfter|terminationGracePeriod|consolidateAfter"),
    "schedule": Difference("bad-schedule", r"is no schedule"),
    "limit-amount": Difference("bad-quantity", r"^spec\.limits"),
    "limit-name": Difference("unknown-resource", r"is no resource name"),
    "volume-size": Difference("bad-quantity", r"volumeSize: '(Ti|T)'"),
    "volume-numbers": Difference("out-of-range", r"ebs\.(iops|throughput)"),
    "device-name": Difference("bad-value", r"is no device name"),
    "device-twice": Difference("duplicate-name", r"the device .* is here twice"),
    "iam-name": Difference("bad-value", r"is no (IAM role|instance profile) name"),
    "aws-id": Difference("bad-value", r"is no (image|subnet|security group) id"),
    "empty-term": Difference("bad-selector", r"this term selects nothing"),
    "term-of-two-things": Difference("bad-selector", r"names one thing alone"),
    "tag-length": Difference("bad-value", r"a tag's key has 1 to 128 characters"),
    "reserved-tag": Difference("reserved-tag", r"is set by the engine or by AWS"),
    "broken-user-data": Difference("bad-user-data", r"says that it is MIME, but"),
    "long-user-data": Difference("user-data-too-large", r"bytes of user data"),
}


def differences(theirs: Theirs, our: Ours) -> Iterator[str]:
    """The names of what explains that the verdicts differ; for what nothing explains, its text after ``UNLISTED``."""
    if theirs.accepts == our.accepts:
        return
    if theirs.accepts:
        for error in our.errors:
            yield _name(STRICTNESSES, error.message, {error.rule})
    else:
        warned = {found.rule for found in our.findings} | {SILENT}
        for cause in theirs.causes:
            if _NO_CAUSE not in cause:
                yield _name(LENIENCIES, cause, warned)


def _name(known: Mapping[str, Difference], text: str, findings: set[str]) -> str:
    names = (name for name, one in known.items() if one.finding in findings and re.search(one.text, text))
    return next(names, f"UNLISTED {text}")
