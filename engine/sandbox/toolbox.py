"""Launchers that let Pulumi's engine find the stand-ins on PATH under the plugins' own names."""

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import engine

LANGUAGE_HOST = "pulumi-language-python"
AWS_PLUGIN = "pulumi-resource-aws"

_MODULES = {LANGUAGE_HOST: "engine.sandbox.language_host", AWS_PLUGIN: "engine.sandbox.aws"}

# engine.converge.toolchain looks for these words, so that a launcher is never taken for the official plugin.
MARK = "nodewright stand-in"


def stand_in_bin(folder: Path, names: Iterable[str] = (LANGUAGE_HOST, AWS_PLUGIN)) -> Path:
    """Write a launcher for each of `names` into `folder`, to be put first on PATH, and remove the others.

    Only what is asked for is written: where an official plugin exists, a stand-in must not hide it. The
    launchers use the interpreter that runs now. Returns `folder`. Raises KeyError for a name that has no
    stand-in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = set(names)
    for name in wanted:
        _write_launcher(folder / name, _MODULES[name])
    for name in _MODULES.keys() - wanted:
        (folder / name).unlink(missing_ok=True)
    return folder


@contextlib.contextmanager
def attached_aws_plugin(environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Run one AWS stand-in for many engines, and give the value for PULUMI_DEBUG_PROVIDERS: `aws:PORT`.

    Engines attach to it instead of starting their own, which saves its start-up at each update. It ends with the
    context, or with this process. Raises RuntimeError when it does not start.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", _MODULES[AWS_PLUGIN]],
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, [_source(), environment.get("PYTHONPATH")]))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = (process.stdout.readline() if process.stdout else "").strip()
        if not port.isdigit():
            raise RuntimeError("nodewright's stand-in for the AWS plugin did not start")
        yield f"aws:{port}"
    finally:
        process.terminate()
        process.communicate()


def _source() -> str:
    return str(Path(engine.__file__).resolve().parent.parent)


def _write_launcher(file: Path, module: str) -> None:
    # `exec` makes the plugin the engine's own child: signals reach it, and it sees the engine die.
    # The package's folder goes through the environment because the program's folder becomes the working one.
    text = (
        "#!/bin/sh\n"
        f"# {MARK} for {file.name}: see engine/sandbox\n"
        f"PYTHONPATH={shlex.quote(_source())}${{PYTHONPATH:+:$PYTHONPATH}}\n"
        "export PYTHONPATH\n"
        f'exec {shlex.quote(sys.executable)} -m {module} "$@"\n'
    )
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return
    unfinished = file.with_name(f".{file.name}.part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.chmod(0o755)
    unfinished.rename(file)
