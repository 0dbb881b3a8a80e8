"""The command, called in this process."""

import sys

import pytest

from capcal_lib import cli


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """Call the command in this process, for speed; return its status and what it printed."""
    monkeypatch.setattr(sys, "argv", ["capcal", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err
