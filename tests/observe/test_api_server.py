"""The way to an API server: watches line by line, credentials that expire, and nothing that hangs for ever."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.observe.api_server import ApiServer
from engine.observe.failure import ObservationFailed, Refused
from tests.kubernetes_server import END, FakeApiServer, kubeconfig_text, serving
from tests.observe.kubernetes_objects import pod_object

PODS = "/api/v1/pods"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with serving(FakeApiServer()) as started:
        yield started


@pytest.fixture
def api_server(server: FakeApiServer, tmp_path: Path) -> ApiServer:
    return ApiServer(server.kubeconfig(tmp_path))


def kubeconfig_with(user: dict[str, Any], server: FakeApiServer, folder: Path) -> str:
    config = json.loads(kubeconfig_text(server.url))
    config["users"] = [{"name": "test", "user": user}]
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config), encoding="utf-8")
    return str(file)


def test_a_watch_gives_line_after_line_as_they_come(server: FakeApiServer, api_server: ApiServer) -> None:
    watch = api_server.watch(PODS, {"resourceVersion": "1"})
    server.await_watches(PODS)
    server.change("ADDED", PODS, pod_object(name="first"))
    assert json.loads(next(watch))["object"]["metadata"]["name"] == "first"
    server.change("ADDED", PODS, pod_object(name="second", annotations={"long": "x" * 300_000}))
    assert json.loads(next(watch))["object"]["metadata"]["name"] == "second"
    server.tell(PODS, END.decode())
    assert list(watch) == []


def test_a_watch_that_is_refused_says_with_what(server: FakeApiServer, api_server: ApiServer) -> None:
    server.refuse("GET", f"{PODS}?watch", 410, "too old resource version")

    with pytest.raises(Refused, match="too old resource version") as caught:
        api_server.watch(PODS, {"resourceVersion": "1"})

    assert caught.value.status == 410


def test_a_watch_whose_connection_breaks_is_no_end(server: FakeApiServer, api_server: ApiServer) -> None:
    watch = api_server.watch(PODS, {"resourceVersion": "1"})
    server.await_watches(PODS)
    server.cut_watches()

    with pytest.raises(ObservationFailed, match=f"WATCH {PODS}"):
        next(watch)


def test_a_watch_that_falls_silent_is_given_up(server: FakeApiServer, api_server: ApiServer) -> None:
    watch = api_server.watch(PODS, {"resourceVersion": "1"}, silence_seconds=0.1)

    with pytest.raises(ObservationFailed, match="timed out"):
        next(watch)


def test_a_server_that_never_answers_a_watch_is_given_up(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        nowhere = FakeApiServer(url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        api_server = ApiServer(nowhere.kubeconfig(tmp_path))

        with pytest.raises(ObservationFailed, match="gave no answer to GET"):
            api_server.watch(PODS, {"resourceVersion": "1"}, silence_seconds=0.1)


def test_a_watch_that_waits_is_ended_from_another_thread(server: FakeApiServer, api_server: ApiServer) -> None:
    watch = api_server.watch(PODS, {"resourceVersion": "1"})
    ended = threading.Event()

    def follow() -> None:
        with contextlib.suppress(ObservationFailed):
            list(watch)
        ended.set()

    reader = threading.Thread(target=follow)
    reader.start()
    server.await_watches(PODS)
    watch.interrupt()

    assert ended.wait(5)
    reader.join()


def test_a_token_file_is_read_again_when_its_token_expired(server: FakeApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first", encoding="utf-8")
    server.token = "first"
    api_server = ApiServer(kubeconfig_with({"tokenFile": str(token)}, server, tmp_path))
    assert api_server.ask("GET", "/version")[0] == 200

    server.token = "second"
    token.write_text("second", encoding="utf-8")

    assert api_server.ask("GET", "/version")[0] == 200
    assert [target for _, target, _ in server.requests] == ["/version"] * 3


def test_an_exec_plugin_is_asked_again_when_its_token_expired_and_a_watch_goes_on(
    server: FakeApiServer, tmp_path: Path
) -> None:
    credential = tmp_path / "credential.json"

    def grant(token: str) -> None:
        status = {"token": token}
        told = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        credential.write_text(json.dumps(told), encoding="utf-8")
        server.token = token

    grant("first")
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [str(credential)]}
    api_server = ApiServer(kubeconfig_with({"exec": plugin}, server, tmp_path))
    assert api_server.ask("GET", "/version")[0] == 200
    grant("second")

    watch = api_server.watch(PODS, {"resourceVersion": "1"})
    server.await_watches(PODS)
    server.change("ADDED", PODS, pod_object())

    assert json.loads(next(watch))["type"] == "ADDED"


def test_credentials_that_stay_wrong_are_asked_once_more_and_no_oftener(server: FakeApiServer, tmp_path: Path) -> None:
    moments = iter([100.0, 100.0, 101.0, 101.0, 106.0, 106.0])
    server.token = "another"
    api_server = ApiServer(server.kubeconfig(tmp_path), monotonic=lambda: next(moments, 200.0))

    assert api_server.ask("GET", "/version")[0] == 401
    assert len(server.requests) == 2


def test_several_threads_share_one_renewal(server: FakeApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first", encoding="utf-8")
    server.token = "first"
    api_server = ApiServer(kubeconfig_with({"tokenFile": str(token)}, server, tmp_path))
    api_server.ask("GET", "/version")
    server.token = "second"
    token.write_text("second", encoding="utf-8")
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(api_server.ask("GET", "/version")[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert statuses == [200] * 8


def test_within_a_pod_its_service_account_is_taken_when_there_is_no_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    with pytest.raises(ObservationFailed, match="Service token file does not exist"):
        ApiServer().ask("GET", "/version")
