"""The digest of an engine changes with its code, and with nothing else."""

from __future__ import annotations

import pytest
from benchmarks.digest import SOURCES, code_digest, engine_digest, files_of

CODE = b'''"""Words."""

from robustphase.constants import empirical

LEVEL: float = empirical(0.4, "a reason")


def half(x):
    """Half of it."""
    return x / 2  # why
'''


def test_words_and_layout_do_not_count(case):
    for old, new in [
        (b"Words.", b"Other words."),
        (b"Half of it.", b"One half."),
        (b"  # why", b""),
        (b"a reason", b"a better reason"),
        (b"x / 2", b"(\n        x / 2\n    )"),
        (b'    """Half of it."""\n', b""),
    ]:
        with case(old, new):
            assert old in CODE
            assert code_digest(CODE.replace(old, new)) == code_digest(CODE)


def test_code_counts(case):
    for old, new in [
        (b"x / 2", b"x / 3"),
        (b"x / 2", b"x // 2"),
        (b"0.4", b"0.5"),
        (b"half", b"part"),
        (b"(x)", b"(x=1)"),
    ]:
        with case(old, new):
            assert old in CODE
            assert code_digest(CODE.replace(old, new)) != code_digest(CODE)


def test_a_string_that_is_no_docstring_counts():
    assert code_digest(b"x = 'a'") != code_digest(b"x = 'b'")
    assert code_digest(b"x = 1\n'a'") != code_digest(b"x = 1\n'b'")


def test_the_digest_does_not_depend_on_how_python_shows_trees():
    # Found by Python 3.11; others must find the same.
    assert (
        code_digest(b"def f(a, *, b=1): return lambda: (yield {**a, 'b': b[1:], 'c': f'{a!r:>3}'})")[:12]
        == "fe221c24cd3e"
    )


def test_rooms_are_folders_files_and_what_is_taken_out():
    known = ["means/a.py", "rows/a.py", "rows/io/b.py", "problem.py", "rowset/c.py"]
    assert files_of(["rows"], known) == ("rows/a.py", "rows/io/b.py")
    assert files_of(["rows/*"], known) == ("rows/a.py",)
    assert files_of(["rows", "!rows/io", "problem.py"], known) == ("problem.py", "rows/a.py")
    assert files_of(["!rows", "rows"], known) == files_of(["rows"], known)


def test_a_room_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="'cellar'"):
        files_of(["means", "cellar"], ["means/a.py"])
    assert files_of(["means", "!cellar"], ["means/a.py"]) == ("means/a.py",)


def test_only_the_rooms_of_a_page_decide_its_digest():
    before = {"means/a.py": b"x = 1", "report/b.py": b"y = 1"}
    assert engine_digest(["means"], before | {"report/b.py": b"y = 2"}) == engine_digest(["means"], before)
    assert engine_digest(["means"], before | {"means/a.py": b"x = 2"}) != engine_digest(["means"], before)
    assert engine_digest(["means"], before | {"means/c.py": b""}) != engine_digest(["means"], before)


def test_moving_code_to_another_file_counts():
    assert engine_digest(["m"], {"m/a.py": b"x = 1"}) != engine_digest(["m"], {"m/b.py": b"x = 1"})


def test_the_sources_are_those_of_the_library():
    assert {"problem.py", "means/filter.py", "rows/io/npy.py"} <= set(SOURCES)
