"""One Kubernetes API server, reached as kubectl would: plain requests and their raw answers.

Of the official client only its kubeconfig, authentication and transport are used: importing its models costs two
seconds of CPU, and building them ten times what reading their JSON does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from engine.observe.failure import ObservationFailed

_TIMEOUT_SECONDS = (3.0, 30.0)
_RETRIES = 2


class ApiServer:
    """``kubeconfig`` and ``context`` None mean kubectl's own defaults. Nothing is read before the first question."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context

    @property
    def endpoint(self) -> str:
        """The server's address. Raises ObservationFailed when the kubeconfig names none."""
        return str(self._client.configuration.host)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """The HTTP status and body of an answer, whatever it is. Raises ObservationFailed when there is none."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            request = self._client.param_serialize(
                method, path, query_params=list((query or {}).items()), header_params=headers, body=body,
                auth_settings=["BearerToken"],
            )  # fmt: skip
            answer = self._client.call_api(*request, _request_timeout=_TIMEOUT_SECONDS)
            return int(answer.status), bytes(answer.read())
        except ApiException as error:
            raise self._unreachable(method, path, str(error.reason)) from None
        except (HTTPError, OSError) as error:
            raise self._unreachable(method, path, str(error)) from None

    @cached_property
    def _client(self) -> Any:
        from kubernetes.client.api_client import ApiClient
        from kubernetes.client.configuration import Configuration
        from kubernetes.config import ConfigException, load_kube_config
        from urllib3.util import Retry

        configuration = Configuration()
        try:
            load_kube_config(config_file=self._kubeconfig, context=self._context, client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (ConfigException, OSError, ValueError, TypeError, AttributeError) as error:
            raise self._no_kubeconfig(error) from None
        except Exception as error:
            # The client parses YAML with a library whose errors this room does not know.
            if type(error).__module__.split(".")[0] != "yaml":
                raise
            raise self._no_kubeconfig(error) from None
        configuration.retries = Retry(total=_RETRIES, backoff_factor=0.2, redirect=0)
        return ApiClient(configuration=configuration)

    def _no_kubeconfig(self, error: Exception) -> ObservationFailed:
        where = self._kubeconfig or "the default kubeconfig ($KUBECONFIG or ~/.kube/config)"
        wanted = f" with the context {self._context}" if self._context else ""
        return ObservationFailed(
            f"{where} gives no cluster{wanted}: {str(error).strip() or type(error).__name__}",
            (
                "set cluster.kubeconfig and cluster.context in the stack file",
                "on EKS, `aws eks update-kubeconfig --name CLUSTER` writes the entry",
            ),
        )

    def _unreachable(self, method: str, path: str, why: str) -> ObservationFailed:
        return ObservationFailed(
            f"the Kubernetes API server {self.endpoint} gave no answer to {method} {path}: {why}",
            (
                f"check that {self.endpoint} is up and can be reached from here: `kubectl get nodes`",
                "check cluster.kubeconfig and cluster.context in the stack file",
            ),
        )


def message_of(body: bytes) -> str:
    """What the API server says in a refusal's body; the start of the body where it is no Status object."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, TypeError, KeyError):
        return body[:200].decode(errors="replace").strip()
