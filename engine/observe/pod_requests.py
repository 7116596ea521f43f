"""A pod's effective requests: what kube-scheduler counts it as (KEP-753, KEP-2837)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from engine.model.quantity import CPU, MEMORY, PODS, Resources, base_units
from engine.observe.json_fields import BrokenObject, Json, mapping, objects, shown, text

Amounts = dict[str, int]
_HUGE_PAGES = "hugepages-"


@lru_cache(maxsize=8192, typed=True)
def _amount(resource: str, written: str | int | float) -> int:
    return base_units(resource, written)


def amounts(holder: Json, key: str) -> Amounts:
    """A resource list in base units; zero amounts are left out. Raises BrokenObject naming the resource."""
    written: Mapping[str, Any] = mapping(holder, key)
    read = {}
    for resource, quantity in written.items():
        if not isinstance(quantity, str | int | float) or isinstance(quantity, bool):
            raise BrokenObject(f"{key}.{resource} is {shown(quantity)}, expected a quantity such as 500m or 16Gi")
        try:
            amount = _amount(resource, quantity)
        except ValueError as error:
            raise BrokenObject(f"{key}.{resource}: {error}") from None
        if amount:
            read[resource] = amount
    return read


def effective_requests(spec: Json, status: Json | None = None) -> Resources:
    """What a pod of this spec takes from a node, with one ``pods``; raises BrokenObject.

    The larger of all containers together (sidecars, the restartable init containers, among them) and the peak while
    init containers run one by one beside the sidecars started before them; then the overhead of its runtime class.
    ``status`` counts a resize in progress: a container's largest amount of spec, granted and allocated.
    """
    granted = _granted(status) if status else {}
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in objects(spec, "initContainers"):
        asked = _container_requests(container, granted)
        if text(container, "restartPolicy") == "Always":
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            _add(asked, sidecars)
            _raise_to(peak, asked)
    for container in objects(spec, "containers"):
        _add(total, _container_requests(container, granted))
    _add(total, sidecars)
    _raise_to(total, peak)
    _lay_over(total, mapping(spec, "resources"))
    _add(total, amounts(spec, "overhead"))
    total[PODS] = 1
    return Resources({resource: amount for resource, amount in total.items() if amount})


def _container_requests(container: Json, granted: Mapping[str, list[Amounts]]) -> Amounts:
    try:
        resources = mapping(container, "resources")
        # The API server fills a missing request from the limit; a pod template has not been through it.
        asked = amounts(resources, "requests")
        named = mapping(resources, "requests")
        for resource, limit in amounts(resources, "limits").items():
            if resource not in named:
                asked[resource] = limit
    except BrokenObject as error:
        raise BrokenObject(f"container {shown(container.get('name'))}: resources.{error}") from None
    if granted:
        for given in granted.get(text(container, "name"), ()):
            _raise_to(asked, given)
    return asked


def _granted(status: Json) -> dict[str, list[Amounts]]:
    found: dict[str, list[Amounts]] = {}
    for key in ("containerStatuses", "initContainerStatuses"):
        for container in objects(status, key):
            given = [amounts(mapping(container, "resources"), "requests"), amounts(container, "allocatedResources")]
            found[text(container, "name")] = [one for one in given if one]
    return found


def _lay_over(total: Amounts, pod_level: Json) -> None:
    """Requests of the pod as a whole replace the containers' sum, for the resources that may be given so."""
    if not pod_level:
        return
    for resource, amount in amounts(pod_level, "requests").items():
        if resource in (CPU, MEMORY) or resource.startswith(_HUGE_PAGES):
            total[resource] = amount


def _add(total: Amounts, more: Amounts) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for resource, amount in floor.items():
        if amount > total.get(resource, 0):
            total[resource] = amount
