"""A connection to the API server that a kubeconfig names, or to the one of the cluster that this process runs in.

Of the official client only its kubeconfig, authentication and transport are used: importing its models costs two
seconds of CPU, and building them ten times what reading their JSON does.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from engine.observe.failure import ObservationFailed

_RETRIES = 2
# One for each kind that is watched, and some for the requests beside them.
_CONNECTIONS = 32
# A connection that a NAT or a load balancer forgot, or whose peer is gone without a word, shows within 40 seconds: a
# watch may well be silent for longer. Seconds idle, seconds between probes, probes.
_KEEPALIVE = (20, 5, 4)


def connected_client(kubeconfig: str | None, context: str | None) -> Any:
    """An ApiClient with credentials read now. Nothing is sent to the server. Raises ObservationFailed.

    Without a kubeconfig anywhere, a pod's own service account is taken.
    """
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
    from kubernetes.utils.keepalive import tcp_keepalive_socket_options
    from urllib3.util import Retry

    configuration = Configuration()
    try:
        if _is_in_cluster(kubeconfig, context):
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, TypeError, AttributeError) as error:
        raise _no_kubeconfig(kubeconfig, context, error) from None
    except Exception as error:
        # The client parses YAML with a library whose errors this room does not know.
        if type(error).__module__.split(".")[0] != "yaml":
            raise
        raise _no_kubeconfig(kubeconfig, context, error) from None
    configuration.retries = Retry(total=_RETRIES, backoff_factor=0.2, redirect=0)
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.socket_options = tcp_keepalive_socket_options(*_KEEPALIVE)
    # Of each retry it would write a line to the terminal; what failed for good is told by who asked.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    return ApiClient(configuration=configuration)


def _is_in_cluster(kubeconfig: str | None, context: str | None) -> bool:
    if kubeconfig or context or os.environ.get("KUBECONFIG"):
        return False
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and not (Path.home() / ".kube" / "config").exists()


def _no_kubeconfig(kubeconfig: str | None, context: str | None, error: Exception) -> ObservationFailed:
    where = kubeconfig or "the default kubeconfig ($KUBECONFIG or ~/.kube/config)"
    wanted = f" with the context {context}" if context else ""
    return ObservationFailed(
        f"{where} gives no cluster{wanted}: {str(error).strip() or type(error).__name__}",
        (
            "set cluster.kubeconfig and cluster.context in the stack file",
            "on EKS, `aws eks update-kubeconfig --name CLUSTER` writes the entry",
        ),
    )
