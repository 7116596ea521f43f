"""The pods that an environment installs: the runner's, and those that keep images on nodes."""

from __future__ import annotations

from typing import Any

from engine.model import labels as keys
from engine.model.canonical import digest
from engine.model.constraint import Toleration
from engine.model.in_cluster import METRICS_PORT, AddOns, PrePull, Runner

# A numbered user, since an image's own user may be a name, which Kubernetes cannot tell from root.
_USER = 65532
# Long enough to finish the step in flight: the AWS provider waits up to ten minutes for an instance to run.
_GRACE_SECONDS = 660
_HOME = "/home/nodewright"
# Optional: credentials and settings that are no business of the stack file, such as PULUMI_CONFIG_PASSPHRASE.
_SETTINGS = "nodewright"
_DIGEST_DIGITS = 10

# A shell-less image has no program of its own that would wait, so one is put beside it: a static one of a megabyte.
TOOL_IMAGE = "public.ecr.aws/docker/library/busybox:1.37.0-musl"
_TOOL_FOLDER = "/nodewright-pre-pull"
_TOOL = f"{_TOOL_FOLDER}/busybox"


def runner_pod(add_ons: AddOns, runner: Runner, claim: str) -> dict[str, Any]:
    """Never on a node of a pool: it must not keep a GPU node from being empty, nor go with one that it lets go."""
    scratch = [{"name": f"scratch-{at}", "mountPath": path} for at, path in enumerate(runner.scratch)]
    kept = [{"name": "state", "mountPath": one.path, "subPath": one.sub_path} for one in runner.volumes]
    container: dict[str, Any] = {
        "name": "nodewright",
        "image": runner.image,
        "command": ["nodewright"],
        "args": list(runner.arguments),
        "env": [
            {"name": "HOME", "value": _HOME},
            # Pulumi writes here; plugins are found on PATH.
            {"name": "PULUMI_HOME", "value": f"{_HOME}/.pulumi"},
            {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
        ],
        "envFrom": [{"secretRef": {"name": _SETTINGS, "optional": True}}],
        # Some 400 MB for ten thousand pods, and Pulumi with its AWS plugin beside it.
        "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": _locked_down(),
        "volumeMounts": [*kept, *scratch],
    }
    if runner.schedule is None:
        container["ports"] = [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}]
    volumes: list[dict[str, Any]] = [{"name": one["name"], "emptyDir": {}} for one in scratch]
    if kept:
        volumes.append({"name": "state", "persistentVolumeClaim": {"claimName": claim}})
    elsewhere = {"matchExpressions": [{"key": keys.NODE_POOL, "operator": "DoesNotExist"}]}
    return {
        "serviceAccountName": add_ons.service_account,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "securityContext": _as_nobody(),
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [elsewhere]}}
        },
        "containers": [container],
        "volumes": volumes,
    }


def pre_pull_pod(pre_pull: PrePull, priority_class: str) -> dict[str, Any]:
    """A container for each image, asleep: an image in use is not collected, and one that cannot be pulled stops no
    other, as it would among init containers."""
    mount = [{"name": "tool", "mountPath": _TOOL_FOLDER}]
    copying = {
        "name": "tool",
        "image": TOOL_IMAGE,
        "command": ["/bin/busybox", "cp", "/bin/busybox", _TOOL],
        **_tiny(),
        "volumeMounts": mount,
    }
    containers = [
        {
            "name": f"image-{digest(image)[:_DIGEST_DIGITS]}",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": [_TOOL, "sleep", "2147483647"],
            # CUDA images ask for every GPU of the node by this variable.
            "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
            **_tiny(),
            "volumeMounts": mount,
        }
        for image in pre_pull.images
    ]
    return {
        "nodeSelector": {keys.NODE_POOL: pre_pull.node_pool},
        "tolerations": [_toleration(one) for one in pre_pull.tolerations],
        "priorityClassName": priority_class,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # The first process of a container does not hear SIGTERM unless it listens.
        "terminationGracePeriodSeconds": 1,
        "securityContext": _as_nobody(),
        "initContainers": [copying],
        "containers": containers,
        "volumes": [{"name": "tool", "emptyDir": {}}],
    }


def _tiny() -> dict[str, Any]:
    requests = {"cpu": "1m", "memory": "4Mi"}
    return {
        "resources": {"requests": requests, "limits": {"memory": "32Mi"}},
        "securityContext": _locked_down(),
    }


def _as_nobody() -> dict[str, Any]:
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _locked_down() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _toleration(toleration: Toleration) -> dict[str, str]:
    told = {"key": toleration.key, "operator": "Exists" if toleration.exists else "Equal"}
    if not toleration.exists:
        told["value"] = toleration.value
    if toleration.effect is not None:
        told["effect"] = toleration.effect.value
    return told
