"""Messages of the library in the words of the command line.

The library says ``pass nonfinite="drop"``; somebody who has typed a command wants to read ``--nonfinite drop``.
"""

from __future__ import annotations

import re

import click

#: A keyword argument with its value, as messages spell it.
_KEYWORD = re.compile(r"""\b(?P<name>[a-z][a-z_]*)=(?P<value>"[^"]*"|'[^']*'|True|False|\.\.\.|[-+\w]+(?:\.\w+)?)""")
#: An argument without a value.
_NAME = re.compile(r"(?P<before>\b[Pp]ass )(?P<name>[a-z][a-z_]*)(?= to\b)")
#: Arguments of the library whose option has another name.
_OTHER_NAMES = {"random_state": "seed", "polish": "no_polish"}


def in_options(message: str, command: click.Command) -> str:
    """Rewrite ``name="value"`` as ``--name value``, and ``pass name to`` likewise, wherever the command has such an option.

    Parameters
    ----------
    message : str
        A message of the library.
    command : click.Command
        Whose options to speak of.

    Returns
    -------
    str
        The message; arguments that are no option of this command stay as they are.
    """
    options = {option.name: option for option in command.params if isinstance(option, click.Option)}

    def rewrite(match: re.Match[str]) -> str:
        name = _OTHER_NAMES.get(match["name"], match["name"])
        option = options.get(name)
        if option is None:
            return match[0]
        value = match["value"].strip("\"'")
        if not option.is_flag:
            return f"{option.opts[-1]} {value}"
        return option.opts[-1] if (value == "False") == name.startswith("no_") else match[0]

    def name_only(match: re.Match[str]) -> str:
        option = options.get(match["name"])
        return match[0] if option is None else f"{match['before']}{option.opts[-1]}"

    return _NAME.sub(name_only, _KEYWORD.sub(rewrite, message))
