"""The launchers are what was asked for, and say whose they are."""

import subprocess
import sys
from pathlib import Path

from engine.converge import toolchain
from engine.sandbox import toolbox
from engine.sandbox.toolbox import AWS_PLUGIN, LANGUAGE_HOST, stand_in_bin


def test_only_what_is_asked_for_is_there(tmp_path: Path) -> None:
    folder = stand_in_bin(tmp_path / "bin")
    assert {file.name for file in folder.iterdir()} == {LANGUAGE_HOST, AWS_PLUGIN}
    stand_in_bin(folder, [AWS_PLUGIN])
    assert {file.name for file in folder.iterdir()} == {AWS_PLUGIN}


def test_a_launcher_is_recognised_as_ours(tmp_path: Path) -> None:
    folder = stand_in_bin(tmp_path)
    assert toolbox.MARK.encode() == toolchain.STAND_IN_MARK
    assert (toolchain.LANGUAGE_HOST, toolchain.AWS_PLUGIN) == (LANGUAGE_HOST, AWS_PLUGIN)
    assert toolchain.is_stand_in(folder / AWS_PLUGIN)
    assert toolchain.official_aws_plugin(str(folder), tmp_path / "none") is None


def test_a_plugin_says_its_port_first_and_leaves_quietly_when_asked(tmp_path: Path) -> None:
    """From another folder, as the engine starts it."""
    folder = stand_in_bin(tmp_path)
    for name in (AWS_PLUGIN, LANGUAGE_HOST):
        process = subprocess.Popen(
            [folder / name, "127.0.0.1:9"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        process.terminate()
        rest, complaints = process.communicate(timeout=10)
        assert (process.returncode, rest, complaints) == (0, "", "")


def test_a_plugin_ends_with_the_engine_that_started_it(tmp_path: Path) -> None:
    folder = stand_in_bin(tmp_path)
    engine = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run(['{folder / AWS_PLUGIN}'])"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdout is not None
    engine.stdout.readline()
    engine.kill()
    # The pipe reaches its end only when the plugin, its last writer, is gone.
    assert engine.communicate(timeout=10)[0] == ""
