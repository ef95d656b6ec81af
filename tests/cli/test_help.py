"""What a newcomer reads."""

from __future__ import annotations

import shlex

import click

from robustphase.cli.app import COMMANDS, application

CONTEXT = click.Context(application, info_name="robustphase")


def command_named(name: str) -> click.Command:
    command = application.get_command(CONTEXT, name)
    assert command is not None
    return command


def test_the_list_of_commands_names_each_with_a_sentence(run):
    text = " ".join(run("--help").stdout.split())
    for name, sentence in COMMANDS.items():
        assert f"{name} {sentence}" in text


def test_help_begins_with_what_the_command_does_and_ends_with_an_example(case, run):
    for name in COMMANDS:
        with case(name):
            lines = run(name, "--help").stdout.rstrip().splitlines()
            assert lines[2].strip() == COMMANDS[name]
            example = [line for line in lines if line.startswith(f"  robustphase {name}")]
            assert lines[-1] in example
            assert "Example:" in lines


def test_the_examples_can_be_typed(case):
    for name in COMMANDS:
        with case(name):
            for line in command_named(name).example.strip().splitlines():
                _, subcommand, *arguments = shlex.split(line)
                command_named(subcommand).make_context(subcommand, arguments, parent=CONTEXT)


def test_every_option_is_explained_and_belongs_to_a_group(case):
    for name in COMMANDS:
        with case(name):
            for parameter in command_named(name).params:
                if isinstance(parameter, click.Option):
                    assert parameter.help, parameter.name
                    assert parameter.help.rstrip().endswith("."), parameter.name


def test_the_version_is_that_of_the_package(run):
    import robustphase

    assert run("--version").stdout.strip() == f"robustphase {robustphase.__version__}"


def test_an_unknown_command_is_bad_usage(run):
    assert "No such command 'fitt'" in run("fitt", code=2).stderr


def test_simulate_lists_every_attack_and_noise_with_its_sentence(run):
    import robustphase as rp

    listed = " ".join(run("simulate", "--list").stdout.split())
    for adversary in rp.simulate.ADVERSARIES.values():
        assert f"{adversary.name} {adversary.group} {adversary.description}" in listed
    for noise in rp.simulate.NOISES.values():
        assert f"{noise.name} {noise.description}" in listed
