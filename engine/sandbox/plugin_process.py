"""How a Pulumi plugin lives as a process: it prints its port, serves gRPC, and ends when the engine does."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures

import grpc

PARENT_CHECK_SECONDS = 0.5

# The engine sends whole programs and states in one message, so gRPC's 4 MB do not do.
_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def serve(register: Callable[[grpc.Server], None], workers: int, port: int = 0) -> None:
    """Serve what `register` adds on 127.0.0.1 until the engine is done with it; never returns normally.

    `port` 0 takes a free one; the one taken is the first line on standard output, as Pulumi's engine expects.
    """
    server = grpc.server(futures.ThreadPoolExecutor(workers), options=_UNLIMITED)
    register(server)
    taken = server.add_insecure_port(f"127.0.0.1:{port}")
    end_quietly_on_signals()
    end_with_parent()
    server.start()
    print(taken, flush=True)
    server.wait_for_termination()


def end_quietly_on_signals() -> None:
    """The engine ends its plugins by SIGINT and waits five seconds for them: go at once, without a traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: _leave())


def end_with_parent() -> None:
    """An engine that was killed cannot end its plugins, so they look after their parent themselves."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        _leave()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
