"""`python -m engine.sandbox.aws`: serve the stand-in for one engine, whose address is the last argument."""

import importlib.util
import sys
import threading
import types


def without_sdk() -> None:
    """Let Pulumi's generated messages be imported without its SDK, which costs 0.4 s and is not needed here.

    The packages around them become empty namespaces, in this process only, which runs no Pulumi program.
    """
    found = importlib.util.find_spec("pulumi")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the Python package `pulumi` is not installed")
    folder = found.submodule_search_locations[0]
    for name in ("pulumi", "pulumi.runtime"):
        namespace = types.ModuleType(name)
        namespace.__path__ = [folder + name.removeprefix("pulumi").replace(".", "/")]
        sys.modules[name] = namespace


def warm_up() -> None:
    """Load what the first call needs while the engine is still starting: all that a client of EC2 is made from."""
    from engine.sandbox.aws.config import ProviderConfig
    from engine.sandbox.aws.session import Session
    from engine.sandbox.aws.waiting import Pace

    # It is never called: the address is that of no service.
    config = ProviderConfig("us-east-1", {"ec2": "http://127.0.0.1:9"}, "none", "none")
    Session(config, Pace.chosen_by()).client("ec2", config.region)


def main() -> None:
    without_sdk()
    from pulumi.runtime.proto import provider_pb2_grpc

    from engine.sandbox.aws.provider import StandInProvider
    from engine.sandbox.aws.waiting import Pace
    from engine.sandbox.plugin_process import serve

    provider = StandInProvider(Pace.chosen_by().scale)
    threading.Thread(target=warm_up, daemon=True).start()
    serve(
        lambda server: provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server),
        workers=128,
    )


if __name__ == "__main__":
    main()
