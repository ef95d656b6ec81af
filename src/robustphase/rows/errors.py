"""What goes wrong with data that lives in files."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class DataError(ValueError):
    """Data that cannot be read or used: one plain sentence that says what, where, and what to do."""


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{purpose} needs the package {package}, which is not installed. "
            f"Install it with: pip install 'robustphase[{extra}]'"
        ) from error


def reason(error: BaseException) -> str:
    """The cause of an error as part of a sentence: its first line, or the name of its type where it says nothing."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else ""
    return text.rstrip(".") or type(error).__name__
