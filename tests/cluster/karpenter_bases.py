"""Objects that Karpenter's API and ours both accept, which together have every field that Karpenter's API knows.

(The fields that we do not implement stand in ``WHOLE``, which only Karpenter's accepts.)
"""

from __future__ import annotations

from typing import Any

from tests.cluster.karpenter_crds import CLASS, POOL

Object = dict[str, Any]

_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu-nodes"}
_DISCOVERY = [{"tags": {"karpenter.sh/discovery": "prod"}}]


def _object(kind: str, name: str, spec: Object) -> Object:
    group = {POOL: "karpenter.sh", CLASS: "karpenter.k8s.aws"}[kind]
    metadata = {"name": name, "labels": {"team": "search"}, "annotations": {"example.com/owner": "search"}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


DYNAMIC = _object(
    POOL,
    "gpu",
    {
        "template": {
            "metadata": {"labels": {"team": "search"}, "annotations": {"example.com/note": "spare"}},
            "spec": {
                "nodeClassRef": _REF,
                "requirements": [
                    {
                        "key": "karpenter.k8s.aws/instance-family",
                        "operator": "In",
                        "values": ["g5", "g6"],
                        "minValues": 2,
                    },
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                ],
                "taints": [
                    {
                        "key": "nvidia.com/gpu",
                        "value": "present",
                        "effect": "NoSchedule",
                        "timeAdded": "2026-01-02T03:04:05Z",
                    }
                ],
                "startupTaints": [
                    {
                        "key": "example.com/agent",
                        "value": "waits",
                        "effect": "NoExecute",
                        "timeAdded": "2026-01-02T03:04:05Z",
                    }
                ],
                "expireAfter": "720h",
                "terminationGracePeriod": "48h",
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "5m",
            "budgets": [
                {"nodes": "20%", "reasons": ["Empty", "Drifted"], "schedule": "0 9 * * 1-5", "duration": "8h"},
                {"nodes": "5"},
            ],
        },
        "limits": {"nvidia.com/gpu": "8", "cpu": 100},
        "weight": 10,
    },
)
STATIC = _object(
    POOL,
    "gpu-static",
    {
        "replicas": 2,
        "limits": {"nodes": "4"},
        "template": {"spec": {"nodeClassRef": _REF, "requirements": []}},
    },
)
BY_TAGS = _object(
    CLASS,
    "gpu-nodes",
    {
        "role": "gpu-node",
        "amiFamily": "AL2023",
        "amiSelectorTerms": [{"tags": {"stage": "prod"}, "name": "gpu-image", "owner": "self"}],
        "subnetSelectorTerms": _DISCOVERY,
        "securityGroupSelectorTerms": _DISCOVERY,
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "rootVolume": True,
                "ebs": {
                    "volumeSize": "100Gi",
                    "volumeType": "gp3",
                    "iops": 3000,
                    "throughput": 125,
                    "encrypted": True,
                    "deleteOnTermination": True,
                    "kmsKeyID": "alias/gpu",
                    "snapshotID": "snap-0123456789abcdef0",
                },
            },
            {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "1Ti"}},
        ],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 2,
            "httpTokens": "required",
        },
        "kubelet": {"maxPods": 110},
        "instanceStorePolicy": "RAID0",
        "associatePublicIPAddress": False,
        "detailedMonitoring": True,
        "tags": {"team": "search"},
        "userData": "#!/bin/bash\necho hello\n",
    },
)
BY_ID = _object(
    CLASS,
    "gpu-nodes",
    {
        "instanceProfile": "gpu-node",
        "amiFamily": "Custom",
        "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}],
        "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
        "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
    },
)
BY_PARAMETER = _object(
    CLASS, "gpu-nodes", {**BY_ID["spec"], "amiFamily": "AL2", "amiSelectorTerms": [{"ssmParameter": "/images/gpu"}]}
)
BY_ALIAS = _object(
    CLASS,
    "gpu-nodes",
    {
        "role": "gpu-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": _DISCOVERY,
        "securityGroupSelectorTerms": [{"name": "gpu-nodes"}],
    },
)
WHOLE = _object(
    CLASS,
    "gpu-nodes",
    {
        **BY_ALIAS["spec"],
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {"snapshotID": "snap-0123456789abcdef0", "volumeInitializationRate": 200},
            }
        ],
        "capacityReservationSelectorTerms": [
            {"tags": {"stage": "prod"}, "ownerID": "123456789012", "instanceMatchCriteria": "open"},
            {"id": "cr-0123456789abcdef0"},
        ],
        "connectionTracking": {"tcpEstablishedTimeout": 600, "udpStreamTimeout": 120, "udpTimeout": 45},
        "context": "reserved",
        "cpuOptions": {"nestedVirtualization": "enabled"},
        "ipPrefixCount": 1,
        "networkInterfaces": [
            {"deviceIndex": 0, "networkCardIndex": 0, "interfaceType": "interface"},
            {"deviceIndex": 1, "networkCardIndex": 1, "interfaceType": "efa-only"},
        ],
        "placementGroupSelector": {"name": "gpu"},
    },
)
WHOLE_BY_ID = _object(
    CLASS,
    "gpu-nodes",
    {
        **BY_ALIAS["spec"],
        "capacityReservationSelectorTerms": [{"id": "cr-0123456789abcdef0"}],
        "placementGroupSelector": {"id": "pg-0123456789abcdef0"},
    },
)
RESERVED = _object(
    CLASS,
    "gpu-nodes",
    {**BY_ALIAS["spec"], "capacityReservationSelectorTerms": WHOLE["spec"]["capacityReservationSelectorTerms"]},
)
IMPLEMENTED = {POOL: (DYNAMIC, STATIC), CLASS: (BY_TAGS, BY_ID, BY_PARAMETER, BY_ALIAS, RESERVED)}
BASES = {POOL: (DYNAMIC, STATIC), CLASS: (*IMPLEMENTED[CLASS], WHOLE, WHOLE_BY_ID)}


def beside(item: Object) -> Object:
    """What an object needs at its side so that its references lead somewhere: a pool its class, a class a pool."""
    if item.get("kind") == POOL:
        return BY_ALIAS
    name = item["metadata"].get("name") if isinstance(item.get("metadata"), dict) else None
    ref = {**_REF, "name": name if isinstance(name, str) else "gpu-nodes"}
    return _object(POOL, "gpu", {"template": {"spec": {"nodeClassRef": ref, "requirements": []}}})
