"""The page about the command line shows what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from robustphase.cli.app import COMMANDS, application

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n\$ robustphase (.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Arguments and output of every command on the page.
EXAMPLES = [(shlex.split(typed), shown.splitlines()) for typed, shown in BLOCK.findall(PAGE)]
QUICK = ("simulate", "fit", "report", "plan", "reproduce")
#: Numbers may differ in their last digits from machine to machine, and times altogether; the words may not.
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")


def test_the_page_has_an_example_of_every_command():
    assert {arguments[0] for arguments, _ in EXAMPLES} == set(COMMANDS)


def test_the_options_exist(case):
    for arguments in [arguments for arguments, _ in EXAMPLES]:
        with case(arguments):
            context = click.Context(application, info_name="robustphase")
            command = application.get_command(context, arguments[0])
            assert command is not None
            if arguments[-1] != "10":  # The example of a wrong value.
                command.make_context(arguments[0], arguments[1:], parent=context)


@pytest.mark.usefixtures("sketched", "in_one_process")
def test_the_output_is_what_is_shown(tmp_path, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    compared = 0
    for arguments, shown in EXAMPLES:
        if arguments[0] not in QUICK:
            continue
        told = CliRunner().invoke(application, arguments, prog_name="robustphase").output
        lines = {NUMBER.sub("#", line) for line in told.splitlines()}
        for line in shown:
            assert NUMBER.sub("#", line) in lines, line
            compared += 1
    assert compared > 30
