"""What a person sees, on a terminal and in a log."""

from __future__ import annotations

import os
import pty
import re
import threading
import warnings

import click
import numpy as np
from click.testing import CliRunner
from tests.processes import COMMAND_LINE, start

from robustphase.cli import terminal
from robustphase.cli.app import as_command, general_options, in_options, option, sentence, warnings_said
from robustphase.cli.terminal import HALF, Screen, one_line, shown, side_by_side

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@as_command("sample", example="robustphase sample")
@option("Some", "--level", help="A level.")
@option("Some", "--no-polish", is_flag=True, help="A flag.")
@option("Some", "--whiten", is_flag=True, help="A flag.")
@option("Some", "--seed", help="A seed.")
@option("Some", "--noise-mean", help="A word.")
@option("Some", "--responses", help="A file.")
@general_options
def sample(quiet: bool, debug: bool, **rest: object) -> None:
    """A command to try things on."""
    warnings.warn("noise_mean='unknown'\nmay help, or level=3", UserWarning, stacklevel=1)
    warnings.warn("an old name", DeprecationWarning, stacklevel=1)
    click.echo(warnings_said())


def test_messages_of_the_library_are_told_in_options(case):
    for message, expected in [
        ('Try noise_mean="unknown".', "Try --noise-mean unknown."),
        ("Try noise_mean='unknown', or level=0.15.", "Try --noise-mean unknown, or --level 0.15."),
        ("Try level=1e-3 or level=-2.5", "Try --level 1e-3 or --level -2.5"),
        ("pass polish=False for", "pass --no-polish for"),
        ("pass polish=True for", "pass polish=True for"),
        ("whiten=True if", "--whiten if"),
        ("random_state=3", "--seed 3"),
        ("max_iter=100", "max_iter=100"),
        ("say where (responses=...).", "say where (--responses ...)."),
        ("y**2 if y holds magnitudes; a == b", "y**2 if y holds magnitudes; a == b"),
        ("pass level to see, pass other to see", "pass --level to see, pass other to see"),
    ]:
        with case(message):
            assert in_options(message, sample) == expected


def test_a_warning_is_one_line_on_standard_error_and_can_be_kept():
    result = CliRunner().invoke(sample, [])
    assert result.stderr == "warning: --noise-mean unknown may help, or --level 3\n"
    assert result.stdout == "--noise-mean unknown may help, or --level 3\n"


def test_every_error_has_a_sentence(case):
    for error, said in [
        (ValueError("first\n  second"), "first second"),
        (OSError(28, "No space left on device"), "no space left on the disk while writing the output."),
        (OSError(28, "No space left on device", "a\nb"), "no space left on the disk while writing a\\nb."),
        (PermissionError(13, "Permission denied", "x"), "cannot use x: Permission denied."),
        (OSError(5, "Input/output error"), "Input/output error."),
        (MemoryError(), "not enough memory."),
        (ImportError("needs h5py"), "needs h5py"),
        (IndexError("9"), "unexpected IndexError: 9. --debug shows where; please report it."),
        (ValueError(), "unexpected ValueError: no message. --debug shows where; please report it."),
    ]:
        with case(said):
            assert sentence(error) == said


def test_control_characters_are_spelled_out():
    assert shown("a\x1b[31m\n\u202e☃") == "a\\x1b[31m\\n\\u202e☃"
    assert shown(b"\xff") == "\\udcff"
    assert one_line(" two\n\twords\r") == "two words"


def test_pictures_take_two_pixels_to_a_cell():
    text = side_by_side({"a": np.zeros((3, 4)), "b": np.ones((3, 4))}, 0.0, 1.0)
    lines = text.plain.splitlines()
    assert lines == ["a      b   ", *[HALF * 4 + "   " + HALF * 4] * 2]
    assert {str(span.style) for span in text.spans} == {
        "rgb(0,0,0) on rgb(0,0,0)",
        "rgb(255,255,255) on rgb(255,255,255)",
        "rgb(255,255,255) on rgb(0,0,0)",
    }


def test_long_work_without_a_terminal_speaks_up_in_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "FIRST_LINE", 0.01)
    see, spoken = Screen(), threading.Event()
    monkeypatch.setattr(see, "note", lambda text: (said.append(text), spoken.set()))
    said: list[str] = []
    with see.watching("fitting", lambda: "7 passes"):
        assert spoken.wait(30)
    assert re.fullmatch(r"fitting: 7 passes, \d+ s", said[0])
    count = len(said)
    assert not [t for t in threading.enumerate() if t.name == "robustphase-progress"]
    assert len(said) == count


def test_a_log_gets_one_line_per_tenth_and_not_one_per_run(capsys):
    with Screen().counting("comparing") as tell:
        for done in range(1, 1001):
            tell(done, 1000, "text")
    assert len(capsys.readouterr().err.splitlines()) == 11


def on_a_terminal(arguments: list[str], folder, **variables: str) -> str:
    """All that a person would see."""
    mine, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "100", **variables}
    process = start(COMMAND_LINE, *arguments, cwd=folder, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(mine, 4096)
        except OSError:  # The other end is closed.
            break
        if not part:
            break
        seen += part
    os.close(mine)
    process.wait(timeout=60)
    return seen.decode()


def test_a_terminal_shows_live_progress_and_colour(tmp_path, data):
    seen = on_a_terminal(["fit", data.name], tmp_path)
    assert re.search(r"fitting: \d+ passes over 450 samples, \d+ s", seen)
    assert COLOUR.search(seen)
    assert "result: data-result.npz" in seen
    assert "\x1b[?25h" in seen  # The cursor is given back.


def test_no_color_is_respected(tmp_path):
    plain = on_a_terminal(["fit", "nowhere.npz"], tmp_path, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain)
    assert "nowhere.npz" in plain


def test_a_terminal_that_cannot_move_gets_plain_lines(tmp_path, data):
    seen = on_a_terminal(["fit", data.name], tmp_path, TERM="dumb")
    assert "\x1b" not in seen
    assert "result: data-result.npz" in seen
