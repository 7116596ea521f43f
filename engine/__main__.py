"""``python -m engine``: the same as the ``nodewright`` command."""

from engine.cli.main import run

if __name__ == "__main__":
    run()
