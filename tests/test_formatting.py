"""Numbers, sizes and durations are told for a person."""

from __future__ import annotations

import pytest

from robustphase.formatting import in_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (8 * 10**9, "8 GB"),
        (999_999, "1000 kB"),
        (10**16, "10000 TB"),
    ],
)
def test_sizes_are_told_for_a_person(count, text):
    assert in_bytes(count) == text
