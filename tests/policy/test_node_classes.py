"""What an EC2NodeClass file means, its spellings, and everything that can be wrong with it."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Severity
from engine.model.policy import AmiFamily, BlockDevice, Kubelet, MetadataOptions, NodeClass, SelectorTerm
from engine.model.quantity import Resources
from tests import builders
from tests.policy.texts import CLASS, POOL, added, class_of, edited, findings_of, policy_of, rules

SUBNETS = "  subnetSelectorTerms:\n    - tags: {karpenter.sh/discovery: prod}\n"
GROUPS = "  securityGroupSelectorTerms:\n    - tags: {karpenter.sh/discovery: prod}\n"
IMAGES = "  amiSelectorTerms:\n    - alias: al2023@latest\n"
PROD = SelectorTerm(tags={"karpenter.sh/discovery": "prod"})

EVERYTHING = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu-nodes}
spec:
  amiFamily: AL2
  amiSelectorTerms:
    - {name: "golden-*", owner: self}
    - {tags: {image: golden}}
    - {id: ami-0123456789abcdef0}
    - {ssmParameter: /images/golden}
  subnetSelectorTerms:
    - {id: subnet-0123456789abcdef0}
    - {tags: {a: "1", b: "*"}}
  securityGroupSelectorTerms:
    - {id: sg-0123456789abcdef0}
    - {name: nodes}
  instanceProfile: gpu-node
  userData: |
    #!/bin/sh
    true
  tags: {cost: "1"}
  blockDeviceMappings:
    - deviceName: /dev/xvda
      rootVolume: true
      ebs: {volumeSize: 100Gi}
    - deviceName: /dev/xvdb
      ebs:
        volumeSize: 1Ti
        volumeType: io2
        iops: 5000
        encrypted: true
        kmsKeyID: key
        snapshotID: snap-1
        deleteOnTermination: false
  metadataOptions: {httpPutResponseHopLimit: 2, httpTokens: optional}
  kubelet:
    maxPods: 50
    podsPerCore: 2
    systemReserved: {cpu: 100m, memory: 1Gi}
    kubeReserved: {memory: 500Mi}
    evictionHard: {memory.available: 5%, nodefs.available: 1Gi}
    clusterDNS: [10.0.0.10]
  instanceStorePolicy: RAID0
  associatePublicIPAddress: false
  detailedMonitoring: true
"""


def without_place(node_class: NodeClass) -> NodeClass:
    return builders.node_class(
        node_class.name,
        **{
            name: getattr(node_class, name)
            for name in (each.name for each in type(node_class).__attrs_attrs__)
            if name not in ("name", "position")
        },
    )


def test_every_field_of_a_class_has_its_meaning() -> None:
    policy = policy_of(POOL, EVERYTHING)
    assert policy.warnings == ()
    assert without_place(policy.node_classes[0]) == builders.node_class(
        "gpu-nodes",
        ami_family=AmiFamily.AL2,
        ami_selector_terms=(
            SelectorTerm(name="golden-*", owner="self"),
            SelectorTerm(tags={"image": "golden"}),
            SelectorTerm(id="ami-0123456789abcdef0"),
            SelectorTerm(ssm_parameter="/images/golden"),
        ),
        subnet_selector_terms=(SelectorTerm(id="subnet-0123456789abcdef0"), SelectorTerm(tags={"a": "1", "b": "*"})),
        security_group_selector_terms=(SelectorTerm(id="sg-0123456789abcdef0"), SelectorTerm(name="nodes")),
        instance_profile="gpu-node",
        user_data="#!/bin/sh\ntrue\n",
        tags={"cost": "1"},
        block_devices=(
            BlockDevice("/dev/xvda", volume_size_gib=100, is_root=True),
            BlockDevice(
                "/dev/xvdb",
                volume_size_gib=1024,
                volume_type="io2",
                iops=5000,
                encrypted=True,
                kms_key_id="key",
                snapshot_id="snap-1",
                delete_on_termination=False,
            ),
        ),
        metadata_options=MetadataOptions(http_put_response_hop_limit=2, http_tokens="optional"),
        kubelet=Kubelet(
            max_pods=50,
            pods_per_core=2,
            system_reserved=Resources({"cpu": 100, "memory": 2**30}),
            kube_reserved={"memory": "500Mi"},
            eviction_hard={"memory.available": "5%", "nodefs.available": "1Gi"},
            cluster_dns=("10.0.0.10",),
        ),
        instance_store_raid0=True,
        associate_public_ip_address=False,
        detailed_monitoring=True,
    )


def test_a_class_that_says_little_gets_karpenters_defaults() -> None:
    node_class = class_of(CLASS)
    assert node_class.ami_family is AmiFamily.AL2023
    assert node_class.block_devices == (
        BlockDevice("/dev/xvda", volume_size_gib=20, volume_type="gp3", encrypted=True, is_root=True),
    )
    assert node_class.metadata_options == MetadataOptions("enabled", "disabled", 1, "required")
    assert node_class.kubelet == Kubelet()


def test_a_class_may_name_no_role_and_gets_the_environments() -> None:
    node_class = class_of(CLASS.replace("  role: gpu-node\n", ""))
    assert (node_class.role, node_class.instance_profile) == (None, None)


def test_a_custom_image_has_no_default_volume_and_its_last_one_is_for_pods() -> None:
    custom = CLASS.replace("    - alias: al2023@latest", "    - id: ami-0123456789abcdef0").replace(
        "  role:", "  amiFamily: Custom\n  role:"
    )
    assert class_of(custom).block_devices == ()
    volumes = "".join(f"    - {{deviceName: {name}, ebs: {{volumeSize: 1Gi}}}}\n" for name in ("/dev/sda1", "/dev/sdb"))
    devices = class_of(f"{custom}  blockDeviceMappings:\n{volumes}").block_devices
    assert [device.is_root for device in devices] == [False, True]


@pytest.mark.parametrize(("written", "gib"), [("100Gi", 100), ("1Ti", 1024), ("100G", 94), ("1T", 932)])
def test_a_volume_is_of_whole_gibibytes_rounded_up(written: str, gib: int) -> None:
    text = f"{CLASS}  blockDeviceMappings: [{{deviceName: /dev/xvda, ebs: {{volumeSize: {written}}}}}]\n"
    assert class_of(text).block_devices[0].volume_size_gib == gib


# --- spellings


@pytest.mark.parametrize(
    ("old", "new", "terms"),
    [
        (SUBNETS, "  subnetSelector:\n    karpenter.sh/discovery: prod\n", (PROD,)),
        (SUBNETS, "  subnetSelector: {tags: {karpenter.sh/discovery: prod}}\n", (PROD,)),
        (SUBNETS, "  subnetSelector:\n    - tags: {karpenter.sh/discovery: prod}\n", (PROD,)),
        (SUBNETS, "  subnetSelectorTerms:\n    - karpenter.sh/discovery: prod\n", (PROD,)),
        (SUBNETS, "  subnetSelectorTerms: {karpenter.sh/discovery: prod}\n", (PROD,)),
        (SUBNETS, "  subnetSelectorTerms: {tags: {karpenter.sh/discovery: prod}}\n", (PROD,)),
        (SUBNETS, "  subnetSelectorTerms:\n    - tags:\n        karpenter.sh/discovery: prod\n", (PROD,)),
        (
            SUBNETS,
            "  subnetSelector: {aws-ids: 'subnet-1,subnet-2'}\n",
            (SelectorTerm(id="subnet-1"), SelectorTerm(id="subnet-2")),
        ),
        (
            SUBNETS,
            "  subnetSelector: {Name: 'a, b', team: x}\n",
            (SelectorTerm(tags={"Name": "a", "team": "x"}), SelectorTerm(tags={"Name": "b", "team": "x"})),
        ),
    ],
)
def test_selectors_of_every_spelling_select_the_same(old: str, new: str, terms: tuple[SelectorTerm, ...]) -> None:
    for subnet, text_old, text_new in (
        (True, old, new),
        (False, old.replace("subnet", "securityGroup", 1), new.replace("subnetS", "securityGroupS")),
    ):
        if not subnet and "subnet-1" in new:
            continue
        policy = policy_of(POOL, edited(CLASS, text_old, text_new).text)
        node_class = policy.node_classes[0]
        read = node_class.subnet_selector_terms if subnet else node_class.security_group_selector_terms
        assert read == terms
        is_modern = "Terms:\n    - tags:" in new
        assert ("old-spelling" in rules(policy.warnings)) is not is_modern
        assert all(found.severity is Severity.WARNING for found in policy.warnings)


def test_both_spellings_of_a_selector_are_an_error() -> None:
    found = findings_of(POOL, CLASS + "  subnetSelector: {a: b}\n")
    assert rules(found) == ["contradiction", "old-spelling"]


def test_the_warning_of_a_plain_map_names_the_terms() -> None:
    change = edited(CLASS, SUBNETS, "  subnetSelector:\n    a: b\n")
    (warning,) = policy_of(POOL, change.text).warnings
    assert warning.position.line == change.line
    assert "subnetSelector " in warning.message
    assert "subnetSelectorTerms" in warning.hint


def test_a_misspelt_field_of_a_term_is_no_tag() -> None:
    text = CLASS.replace(SUBNETS, "  subnetSelectorTerms:\n    - tag: {a: b}\n")
    assert rules(findings_of(POOL, text)) == ["unknown-field"]


@pytest.mark.parametrize(("family", "alias"), [("AL2023", "al2023@latest"), ("AL2", "al2@latest")])
def test_a_family_without_terms_means_its_newest_image(family: str, alias: str) -> None:
    policy = policy_of(POOL, edited(CLASS, IMAGES, f"  amiFamily: {family}\n").text)
    assert policy.node_classes[0].ami_selector_terms == (SelectorTerm(alias=alias),)
    assert rules(policy.warnings) == ["old-spelling"]
    beta = edited(CLASS, IMAGES, f"  amiFamily: {family}\n").text.replace("aws/v1", "aws/v1beta1")
    assert rules(policy_of(POOL, beta).warnings) == ["old-api-version"]


@pytest.mark.parametrize(
    ("selector", "term"),
    [
        ("{aws-ids: ami-1}", SelectorTerm(id="ami-1")),
        ("{'aws::name': golden, 'aws::owners': self}", SelectorTerm(name="golden", owner="self")),
        ("{image: golden}", SelectorTerm(tags={"image": "golden"})),
    ],
)
def test_an_old_image_selector_is_read(selector: str, term: SelectorTerm) -> None:
    text = edited(CLASS, IMAGES, f"  amiFamily: AL2\n  amiSelector: {selector}\n").text
    assert class_of(text).ami_selector_terms == (term,)


def test_the_first_volume_of_another_name_is_told_to_be_no_root() -> None:
    text = f"{CLASS}  blockDeviceMappings: [{{deviceName: /dev/sda1, ebs: {{volumeSize: 1Gi}}}}]\n"
    assert rules(policy_of(POOL, text).warnings) == ["not-the-root-device"]


# --- errors


@pytest.mark.parametrize(
    ("old", "new", "rule", "caret"),
    [
        ("  role: gpu-node\n", "  roll: gpu-node\n", "unknown-field", "roll"),
        ("  role: gpu-node\n", "  role: gpu-node\n  instanceProfile: x\n", "contradiction", "instanceProfile"),
        ("role: gpu-node", "role: a b", "bad-value", "a b"),
        (SUBNETS, "", "missing-field", "spec"),
        (GROUPS, "", "missing-field", "spec"),
        (SUBNETS, "  subnetSelectorTerms: []\n", "missing-field", "subnetSelectorTerms"),
        (SUBNETS, "  subnetSelectorTerms: [{}]\n", "bad-selector", "{}"),
        (SUBNETS, "  subnetSelectorTerms: [{id: subnet-1, tags: {a: b}}]\n", "bad-selector", "{id"),
        (SUBNETS, "  subnetSelectorTerms: [{id: sg-1}]\n", "bad-value", "sg-1"),
        (SUBNETS, "  subnetSelectorTerms: [{tags: {a: ''}}]\n", "bad-selector", "''"),
        (SUBNETS, "  subnetSelectorTerms: [{tags: {a: }}]\n", "wrong-type", "}"),
        (GROUPS, "  securityGroupSelectorTerms: [{name: a, tags: {a: b}}]\n", "bad-selector", "{name"),
        (IMAGES, "", "missing-field", "spec"),
        (IMAGES, "  amiFamily: Custom\n", "missing-field", "spec"),
        (IMAGES, "  amiSelectorTerms: [{id: ami-1}]\n", "missing-field", "amiSelectorTerms"),
        (IMAGES, "  amiSelectorTerms: [{owner: self}]\n  amiFamily: AL2\n", "bad-selector", "{owner"),
        (IMAGES, "  amiSelectorTerms: [{alias: al2023@latest}, {id: ami-1}]\n", "contradiction", "{alias"),
        (IMAGES, "  amiSelectorTerms: [{alias: al2023@latest, id: ami-1}]\n", "bad-selector", "{alias"),
        ("al2023@latest", "al2023", "bad-value", "al2023"),
        ("al2023@latest", "al20233@latest", "unknown-value", "al20233"),
        ("al2023@latest", "bottlerocket@latest", "not-implemented", "bottlerocket"),
        ("al2023@latest", "windows2022@latest", "not-implemented", "windows2022"),
        ("  role:", "  amiFamily: AL2\n  role:", "contradiction", "AL2"),
        ("  role:", "  amiFamily: Bottlerocket\n  role:", "not-implemented", "Bottlerocket"),
        ("  role:", "  amiFamily: Windows2022\n  role:", "not-implemented", "Windows2022"),
        ("  role:", "  amiFamily: AL2024\n  role:", "unknown-value", "AL2024"),
        ("  role:", "  tags: {karpenter.sh/nodepool: x}\n  role:", "reserved-tag", "karpenter.sh"),
        ("  role:", "  tags: {nodewright.dev/claim: x}\n  role:", "reserved-tag", "nodewright.dev"),
        ("  role:", "  tags: {kubernetes.io/cluster/x: owned}\n  role:", "reserved-tag", "kubernetes.io"),
        ("  role:", "  instanceStorePolicy: RAID1\n  role:", "unknown-value", "RAID1"),
        ("  role:", "  metadataOptions: {httpTokens: none}\n  role:", "unknown-value", "none"),
        ("  role:", "  metadataOptions: {httpPutResponseHopLimit: 65}\n  role:", "out-of-range", "65"),
        ("  role:", "  detailedMonitoring: maybe\n  role:", "wrong-type", "maybe"),
        ("  role:", "  kubelet: {maxPods: -1}\n  role:", "out-of-range", "-1"),
        ("  role:", "  kubelet: {evictionHard: {memory.availabl: 5%}}\n  role:", "unknown-value", "memory.availabl"),
        ("  role:", "  kubelet: {evictionHard: {memory.available: 5x}}\n  role:", "bad-quantity", "5x"),
        ("  role:", "  kubelet: {systemReserved: {gpu: 1}}\n  role:", "unknown-value", "gpu"),
        ("  role:", "  kubelet: {clusterDNS: [dns]}\n  role:", "bad-value", "dns"),
        ("  role:", "  kubelet: {cpuCFSQuota: true}\n  role:", "not-implemented", "true"),
        ("  role:", "  placementGroupSelector: {name: x}\n  role:", "not-implemented", "{name"),
        ("  role:", "  networkInterfaces: []\n  role:", "not-implemented", "[]"),
        ("  role:", "  ipPrefixCount: 1\n  role:", "not-implemented", "1"),
        ("  role:", "  cpuOptions: {}\n  role:", "not-implemented", "{}"),
        ("  role:", "  connectionTracking: {}\n  role:", "not-implemented", "{}"),
        ("  role:", "  context: x\n  role:", "not-implemented", "x"),
    ],
)
def test_a_wrong_part_is_an_error_with_the_caret_on_it(old: str, new: str, rule: str, caret: str) -> None:
    change = edited(CLASS, old, new)
    told = findings_of(POOL, change.text)
    (found,) = [each for each in told if each.severity is Severity.ERROR]
    assert found.rule == rule
    assert found.position.source_line[found.position.column - 1 :].startswith(caret)


@pytest.mark.parametrize(
    ("ebs", "rule", "severity"),
    [
        ("{}", "missing-field", Severity.ERROR),
        ("{volumeSize: 100}", "bad-quantity", Severity.ERROR),
        ("{volumeSize: 0Gi}", "out-of-range", Severity.ERROR),
        ("{volumeSize: 65Ti}", "out-of-range", Severity.ERROR),
        ("{volumeSize: 1Gi, volumeType: gp4}", "unknown-value", Severity.ERROR),
        ("{volumeSize: 1Gi, iops: '5'}", "wrong-type", Severity.ERROR),
        ("{snapshotID: snap-1, volumeInitializationRate: 100}", "not-implemented", Severity.ERROR),
        ("{volumeSize: 1Gi, volumeType: gp2, throughput: 500}", "bad-volume", Severity.WARNING),
        ("{volumeSize: 1Gi, volumeType: st1, iops: 500}", "bad-volume", Severity.WARNING),
        ("{volumeSize: 1Gi, volumeType: io1}", "bad-volume", Severity.WARNING),
    ],
)
def test_a_volume_that_ec2_would_refuse_is_told(ebs: str, rule: str, severity: Severity) -> None:
    text = f"{CLASS}  blockDeviceMappings: [{{deviceName: /dev/xvda, ebs: {ebs}}}]\n"
    assert [(each.rule, each.severity) for each in findings_of(POOL, text)] == [(rule, severity)]


def test_a_device_named_twice_and_two_roots_are_errors() -> None:
    one = "{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 1Gi}}"
    text = f"{CLASS}  blockDeviceMappings: [{one}, {one}]\n"
    assert sorted(rules(findings_of(POOL, text))) == ["contradiction", "duplicate-name"]


def test_a_field_that_is_not_implemented_is_named() -> None:
    (found,) = findings_of(POOL, added(CLASS, "spec:", "  ipPrefixCount: 1").text)
    assert "spec.ipPrefixCount" in found.message
