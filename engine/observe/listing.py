"""Whole lists of Kubernetes objects, page by page. A list that is cut short is a failed list."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from attrs import frozen

from engine.observe.api_server import refusal
from engine.observe.failure import ObservationFailed, Refused
from engine.observe.json_fields import shown
from engine.observe.kubernetes import Seen

PAGE = 500
GONE = 410
_RESTARTS = 3


class Answering(Protocol):
    """A way to an API server: the status and body of an answer; raises ObservationFailed when there is none."""

    @property
    def endpoint(self) -> str: ...

    def ask(self, method: str, path: str, *, query: Mapping[str, str] | None = None) -> tuple[int, bytes]: ...


@frozen
class Page:
    """``resource_version`` is the whole list's: every page of one list shows the same moment."""

    items: list[Any]
    resource_version: str
    token: str


def pages(server: Answering, what: str, path: str, selector: str = "") -> Iterator[Page]:
    """Every page of the list at ``path``, fetched as it is asked for. Raises ObservationFailed: then none counts.

    Refused with 410 means that the list must be begun again: its moment is no longer known to the server.
    """
    token = ""
    while True:
        page = _page(server, what, path, _query(selector, PAGE, token))
        yield page
        token = page.token
        if not token:
            return


def whole_list(
    server: Answering, what: str, path: str, selector: str, see: Callable[[Any, int], Seen]
) -> tuple[list[Seen], str]:
    """All objects at ``path`` as ``see`` understands them, and the list's resourceVersion. Raises ObservationFailed.

    Begun again a few times where it changes faster than it is read. Each page's JSON is let go once it was seen.
    """
    for restart in range(_RESTARTS + 1):
        try:
            return _listed(pages(server, what, path, selector), see)
        except Refused as error:
            if error.status != GONE or restart == _RESTARTS:
                raise
    raise AssertionError("the last round returns or raises")


def _listed(read: Iterator[Page], see: Callable[[Any, int], Seen]) -> tuple[list[Seen], str]:
    found: list[Seen] = []
    version = ""
    for page in read:
        version = version or page.resource_version
        found += [see(raw, len(found) + position) for position, raw in enumerate(page.items)]
    return found, version


def newest_version(server: Answering, what: str, path: str, selector: str = "") -> str:
    """The list's resourceVersion now, by asking for one object of it. Raises ObservationFailed."""
    return _page(server, what, path, _query(selector, 1, "")).resource_version


def answered_object(server: Answering, what: str, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object at ``path``. Raises ObservationFailed."""
    status, body = server.ask("GET", path, query=query)
    endpoint = server.endpoint
    if not 200 <= status <= 299:
        raise refusal(endpoint, what, status, body)
    try:
        told = json.loads(body)
    except ValueError as error:
        raise ObservationFailed(
            f"{endpoint} answered the {what} with something that is no JSON: {error}",
            "check that the kubeconfig's server is a Kubernetes API server and not a proxy's page",
        ) from None
    if not isinstance(told, dict):
        raise ObservationFailed(f"{endpoint} answered the {what} with {shown(told)}, expected an object")
    return told


def _query(selector: str, limit: int, token: str) -> dict[str, str]:
    asked = {"limit": str(limit), "continue": token, "fieldSelector": selector}
    return {name: value for name, value in asked.items() if value}


def _page(server: Answering, what: str, path: str, query: Mapping[str, str]) -> Page:
    told = answered_object(server, f"list of {what}", path, query)
    metadata = told.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    version, token = known.get("resourceVersion"), known.get("continue")
    return Page(
        items=_items(what, told),
        resource_version=version if isinstance(version, str) else "",
        token=token if isinstance(token, str) else "",
    )


def _items(what: str, told: Mapping[str, Any]) -> list[Any]:
    items = told.get("items")
    if items is None and str(told.get("kind", "")).endswith("List"):
        return []
    if not isinstance(items, list):
        raise ObservationFailed(f"the list of {what} has items {shown(items)}, expected a list")
    return items
