"""The user page runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "estimator.md"


def test_every_block_of_the_page_runs(capsys):
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 6
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "certificate" in capsys.readouterr().out
