"""Machine images: what a node class's image selectors resolve to, one id for each image variant.

A variant is what a kind of instance has to boot: ``standard-amd64``, ``nvidia-amd64``, ``neuron-amd64`` and the same
on arm64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import frozen

from engine.model.policy import AmiFamily, NodeClass, SelectorTerm
from engine.observe.ec2_network import term_filters

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

# Which Kubernetes release an image alias means where nobody asked the cluster. AL2 ended with 1.32: pin it by id.
DEFAULT_KUBERNETES_VERSION = "1.33"

_EKS = "/aws/service/eks/optimized-ami"
_AL2023 = {
    "standard-amd64": ("x86_64", "standard"),
    "standard-arm64": ("arm64", "standard"),
    "nvidia-amd64": ("x86_64", "nvidia"),
    "nvidia-arm64": ("arm64", "nvidia"),
    "neuron-amd64": ("x86_64", "neuron"),
}
# The directory of the parameter, and how EKS names the image itself when a release is pinned.
_AL2 = {
    "standard-amd64": ("amazon-linux-2", "amazon-eks-node"),
    "standard-arm64": ("amazon-linux-2-arm64", "amazon-eks-arm64-node"),
    "nvidia-amd64": ("amazon-linux-2-gpu", "amazon-eks-gpu-node"),
    "neuron-amd64": ("amazon-linux-2-gpu", "amazon-eks-gpu-node"),
}
_BOTTLEROCKET = {
    "standard-amd64": ("", "x86_64"),
    "standard-arm64": ("", "arm64"),
    "nvidia-amd64": ("-nvidia", "x86_64"),
    "nvidia-arm64": ("-nvidia", "arm64"),
}
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_ACCELERATION = ("standard", "nvidia", "neuron")
_PARAMETERS_A_CALL = 10
_NEWEST = "latest"
_OWNERS_OF_A_NAME = ("self", "amazon")


@frozen
class _Image:
    """``architecture`` is Kubernetes' word, empty when EC2 does not say; ``created_at`` sorts as text."""

    id: str
    architecture: str
    created_at: str

    @property
    def variants(self) -> Iterator[str]:
        for architecture in [self.architecture] if self.architecture else _ARCHITECTURES.values():
            for acceleration in _ACCELERATION:
                yield f"{acceleration}-{architecture}"


def images_of(
    ec2: EC2Client, ssm: Callable[[], Any], node_classes: Iterable[NodeClass], kubernetes_version: str
) -> Mapping[str, Mapping[str, str]]:
    """Image ids by node class, then by variant; a variant that nothing matches is missing.

    Of several images that would do, the newest wins. An image that is named by id, name, tags or parameter serves
    every variant of its architecture: what it carries is its maker's business.
    """

    @cache
    def parameters(names: tuple[str, ...]) -> Mapping[str, str]:
        return _parameters(ssm(), names)

    return {
        node_class.name: _by_variant(ec2, parameters, node_class, kubernetes_version) for node_class in node_classes
    }


def _by_variant(
    ec2: EC2Client,
    parameters: Callable[[tuple[str, ...]], Mapping[str, str]],
    node_class: NodeClass,
    kubernetes_version: str,
) -> Mapping[str, str]:
    terms = node_class.ami_selector_terms
    if not terms and node_class.ami_family is not AmiFamily.CUSTOM:
        terms = (SelectorTerm(alias=f"{node_class.ami_family.value.lower()}@{_NEWEST}"),)
    chosen: dict[str, str] = {}
    described: list[_Image] = []
    for term in terms:
        if term.alias is not None:
            names = alias_parameters(term.alias, kubernetes_version)
            values = parameters(tuple(sorted(set(names.values()))))
            chosen.update({variant: values[name] for variant, name in names.items() if name in values})
        elif term.ssm_parameter is not None:
            image_id = parameters((term.ssm_parameter,)).get(term.ssm_parameter)
            described += _described(ec2, SelectorTerm(id=image_id)) if image_id else ()
        else:
            described += _described(ec2, term)
    for image in sorted(described, key=lambda each: (each.created_at, each.id)):
        chosen.update(dict.fromkeys(image.variants, image.id))
    return dict(sorted(chosen.items()))


def alias_parameters(alias: str, kubernetes_version: str) -> Mapping[str, str]:
    """The public SSM parameter of each variant of ``al2023@latest``, ``al2@v20240807``, ``bottlerocket@1.20.3``.

    Empty for a family that has no such parameters. The names are AWS's: EKS user guide, "Retrieve recommended AMI
    IDs", and Bottlerocket's README.
    """
    family, _, release = alias.partition("@")
    if family == "al2023":
        return {variant: _al2023(kubernetes_version, *parts, release) for variant, parts in _AL2023.items()}
    if family == "al2":
        return {variant: _al2(kubernetes_version, *parts, release) for variant, parts in _AL2.items()}
    if family == "bottlerocket":
        directory = f"/aws/service/bottlerocket/aws-k8s-{kubernetes_version}"
        version = release.removeprefix("v") or _NEWEST
        return {
            variant: f"{directory}{flavour}/{architecture}/{version}/image_id"
            for variant, (flavour, architecture) in _BOTTLEROCKET.items()
        }
    return {}


def _al2023(kubernetes_version: str, architecture: str, flavour: str, release: str) -> str:
    image = f"amazon-eks-node-al2023-{architecture}-{flavour}-{kubernetes_version}-{release}"
    directory = "recommended" if release in ("", _NEWEST) else image
    return f"{_EKS}/{kubernetes_version}/amazon-linux-2023/{architecture}/{flavour}/{directory}/image_id"


def _al2(kubernetes_version: str, flavour: str, image: str, release: str) -> str:
    directory = "recommended" if release in ("", _NEWEST) else f"{image}-{kubernetes_version}-{release}"
    return f"{_EKS}/{kubernetes_version}/{flavour}/{directory}/image_id"


def _parameters(ssm: Any, names: Sequence[str]) -> Mapping[str, str]:
    """The values of those parameters that exist."""
    values: dict[str, str] = {}
    for start in range(0, len(names), _PARAMETERS_A_CALL):
        answer = ssm.get_parameters(Names=list(names[start : start + _PARAMETERS_A_CALL]))
        values.update({found["Name"]: found["Value"] for found in answer["Parameters"]})
    return values


def _described(ec2: EC2Client, term: SelectorTerm) -> list[_Image]:
    filters = [*term_filters(term, "image-id", "name"), {"Name": "state", "Values": ["available"]}]
    owners = {}
    if term.owner is not None:
        owners = {"Owners": [term.owner]}
    elif term.name is not None:
        # Anybody may publish an image under any name.
        owners = {"Owners": list(_OWNERS_OF_A_NAME)}
    # An image that a policy pins may have been deprecated since; it still boots.
    pages = ec2.get_paginator("describe_images").paginate(Filters=filters, IncludeDeprecated=True, **owners)  # type: ignore[arg-type]
    return [
        _Image(
            id=raw["ImageId"],
            architecture=_ARCHITECTURES.get(raw.get("Architecture", ""), ""),
            created_at=raw.get("CreationDate", ""),
        )
        for page in pages
        for raw in page["Images"]
    ]
