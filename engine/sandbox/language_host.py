"""Nodewright's stand-in for `pulumi-language-python`: runs a Pulumi program in this very interpreter.

For machines where Pulumi's own language host cannot be downloaded. It serves the engine's LanguageRuntime
protocol on top of the SDK's `LanguageServer`, which does the same for inline programs. What it does not do:
install dependencies, make virtual environments, run other plugins, convert or package programs. The option
`virtualenv` in Pulumi.yaml is therefore only compared with the interpreter that runs, never entered.
"""

import importlib.metadata
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pulumi
from google.protobuf import empty_pb2
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from engine.sandbox.plugin_process import serve

NAME = "nodewright stand-in for pulumi-language-python"
WORKERS = 8


class StandInLanguageHost(LanguageServer):
    """One engine's language host; the engine runs one program a process."""

    def __init__(self, engine_address: str) -> None:
        super().__init__(lambda: None)
        self.engine_address = engine_address

    def Handshake(self, request: Any, context: Any) -> Any:
        self.engine_address = request.engine_address or self.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        # A version in semver, whose build part says what this is: the field takes nothing else.
        return plugin_pb2.PluginInfo(version=f"{importlib.metadata.version('pulumi')}+nodewright.stand-in")

    def About(self, request: Any, context: Any) -> Any:
        python = ".".join(str(part) for part in sys.version_info[:3])
        return language_pb2.AboutResponse(executable=sys.executable, version=python, metadata={"language host": NAME})

    def Run(self, request: Any, context: Any) -> Any:
        folder = request.info.program_directory or request.pwd
        entry = Path(folder, request.info.entry_point or request.program or ".")
        main = entry / "__main__.py" if entry.is_dir() else entry
        arguments = list(request.args)
        # The SDK's server takes the engine's address from where other hosts put the program's arguments.
        request.args[:] = [self.engine_address]
        self.program = lambda: run_program(folder, main, arguments, dict(request.info.options))
        return super().Run(request, context)  # type: ignore[no-untyped-call]

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:
        """Pulumi's own packages only: `pulumi about` shows them, and nothing else reads the answer."""
        installed = sorted(
            (distribution.metadata["Name"], distribution.version)
            for distribution in importlib.metadata.distributions()
            if distribution.metadata["Name"].lower().replace("-", "_").startswith("pulumi")
        )
        found = [language_pb2.DependencyInfo(name=name, version=version) for name, version in installed]
        return language_pb2.GetProgramDependenciesResponse(dependencies=found)

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[Any]:
        text = f"{NAME}: nothing to install; the program runs in {sys.executable}\n"
        yield language_pb2.InstallDependenciesResponse(stdout=text.encode())

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:
        return language_pb2.RuntimeOptionsResponse()

    def Template(self, request: Any, context: Any) -> Any:
        return language_pb2.TemplateResponse()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def RunPlugin(self, request: Any, context: Any) -> Any:
        _refuse(context, "run plugins that are written in Python")

    def GenerateProgram(self, request: Any, context: Any) -> Any:
        _refuse(context, "generate programs")

    def GenerateProject(self, request: Any, context: Any) -> Any:
        _refuse(context, "generate projects")

    def GeneratePackage(self, request: Any, context: Any) -> Any:
        _refuse(context, "generate packages")

    def Pack(self, request: Any, context: Any) -> Any:
        _refuse(context, "pack packages")

    def Link(self, request: Any, context: Any) -> Any:
        _refuse(context, "link packages")


def run_program(folder: str, main: Path, arguments: list[str], options: dict[str, Any]) -> None:
    """Run `main` as `python main` in `folder` would. Raises RunError where a person has to do something."""
    if not main.is_file():
        raise pulumi.RunError(f"{main}: there is no such program; Pulumi.yaml expects it there")
    os.chdir(folder)
    _mention_other_interpreter(folder, options)
    sys.argv = [str(main), *arguments]
    sys.path.insert(0, str(main.parent))
    try:
        runpy.run_path(str(main), run_name="__main__")
    except SystemExit as left:
        if left.code not in (None, 0):
            raise pulumi.RunError(f"{main} exited with {left.code}") from left
    finally:
        sys.path.remove(str(main.parent))


def _mention_other_interpreter(folder: str, options: dict[str, Any]) -> None:
    wanted = options.get("virtualenv")
    if isinstance(wanted, str) and Path(folder, wanted).resolve() != Path(sys.prefix).resolve():
        pulumi.log.debug(f"{NAME}: runs in {sys.prefix}, not in the virtualenv {wanted!r} of Pulumi.yaml")


def _refuse(context: Any, what: str) -> None:
    context.abort(
        grpc.StatusCode.UNIMPLEMENTED,
        f"{NAME} does not {what}; install Pulumi's release archive, which carries the official host",
    )


def main(arguments: list[str]) -> None:
    """Serve the engine whose address is the last argument."""
    host = StandInLanguageHost(arguments[-1] if arguments else "")
    serve(lambda server: language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server), WORKERS)


if __name__ == "__main__":
    main(sys.argv[1:])
