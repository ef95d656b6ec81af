"""Numbers, sizes and durations are told for a person."""

from __future__ import annotations

from robustphase.formatting import duration, in_bytes, number, short_number


def test_sizes_are_told_for_a_person(case):
    for count, text in [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (8 * 10**9, "8 GB"),
        (999_999, "1000 kB"),
        (10**16, "10000 TB"),
    ]:
        with case(count, text):
            assert in_bytes(count) == text


def test_estimated_sizes_have_two_digits_and_times_are_words():
    assert [in_bytes(n, about=True) for n in (0, 999, 1500, 9_960_000, 2.5e9, 1e12, 7e13)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "10 MB",
        "2.5 GB",
        "1.0 TB",
        "70 TB",
    ]
    assert [duration(s) for s in (0.2, 99, 100, 5000, 9000)] == ["0 s", "99 s", "2 min", "83 min", "2.5 h"]


def test_numbers_are_short():
    assert [number(v) for v in (0.123456, 12.0, 1e-7)] == ["0.123", "12", "1e-07"]
    assert number(0.123456, 2) == "0.12"
    said = [short_number(v) for v in (float("nan"), float("inf"), 0.0123, 0.5, 12.345, 250.4, 1e6)]
    assert said == ["", "∞", "0.012", "0.50", "12.35", "250", "1e+06"]
