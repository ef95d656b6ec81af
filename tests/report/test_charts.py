"""Charts: valid markup for any data, nothing outside the frame, nothing unescaped, nothing left out in silence."""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from robustphase.plot.signals import draw_picture
from robustphase.report import Axis, Series, histogram_chart, line_chart, scatter_chart, standalone_svg
from robustphase.report.blocks import short_number
from robustphase.report.figures import inline_svg

SVG = "{http://www.w3.org/2000/svg}"
X, Y = Axis("x"), Axis("y")
LABELS = {"title": "a title", "x": X, "y": Y}
wild = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=12)


def parsed(chart):
    return ElementTree.fromstring(chart)


def coordinates(path):
    """All points of a path of straight lines."""
    for _, x, y in re.findall(r"([ML]) ?(-?[\d.]+) (-?[\d.]+)", path.get("d", "")):
        yield float(x), float(y)


def drawn(root, kind):
    """Paths in the colour of a kind of thing, but for the legend, which stands in a group of its own above the data."""
    clipped = [group for group in root.iter(f"{SVG}g") if group.get("clip-path")]
    inside = [path for group in clipped for path in group.iter(f"{SVG}path")]
    inside += [path for path in root.iter(f"{SVG}path") if path.get("clip-path")]
    return [path for path in inside if f"var(--rp-{kind})" in path.get("style", "")]


def marks(root):
    """Groups of marks that are not round."""
    return [group for group in root.iter(f"{SVG}g") if group.get("clip-path") and group.find(f"{SVG}use") is not None]


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


@settings(max_examples=12, deadline=None)
@given(x=wild, y=wild, log_x=st.booleans(), log_y=st.booleans(), style=st.sampled_from(["line", "points", "both"]))
def test_any_numbers_give_a_valid_chart(x, y, log_x, log_y, style):
    size = min(len(x), len(y))
    x, y = np.array(x[:size]), np.array(y[:size])
    series = [Series("data", x, y, y - 1, y + 1, style), Series("more", x[::-1], y, style="line")]
    root = parsed(line_chart(series, title="t", x=Axis("x", log_x), y=Axis("y", log_y), size=(460, 300)))
    assert root.get("viewBox") == "0 0 460 300"
    assert "nan" not in " ".join(path.get("d", "") for path in root.iter(f"{SVG}path")).lower()


@settings(max_examples=6, deadline=None)
@given(values=wild, bins=st.integers(1, 80), log_y=st.booleans())
def test_any_numbers_give_a_valid_histogram(values, bins, log_y):
    groups = [("a", np.array(values)), ("b", np.array([1.0]))]
    parsed(histogram_chart(groups, title="t", x=X, y=Axis("samples", log=log_y), bins=bins))


@pytest.mark.parametrize(
    "hostile", ["<img src=x onerror=alert(1)>", "\"quoted\" & 'more'", "nul\x00 and \udcff surrogate"]
)
def test_text_stays_text(hostile):
    one = np.ones(1)
    named = [Series(hostile, one, one), Series("b", one, one)]
    charts = [
        line_chart(named, title=hostile, x=Axis(hostile), y=Axis(hostile)),
        histogram_chart([(hostile, one), ("b", one)], title=hostile, x=Axis(hostile)),
    ]
    for chart in charts:
        root = parsed(standalone_svg(chart))
        assert not list(root.iter(f"{SVG}img"))
        assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
        shown = re.sub("[\x00\udcff]", "\ufffd", hostile)
        assert shown in " ".join(t or "" for t in texts(root))
        standalone_svg(chart).encode("utf-8")


def test_a_chart_names_itself_to_those_who_do_not_see_it():
    root = parsed(line_chart([Series("error", np.arange(3), np.array([1.0, 2.0, 4.0]))], **LABELS))
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "a title"
    assert "error: 3 points, from 1 to 4" in root.get("aria-label")


def test_large_sets_are_downsampled_reproducibly_and_say_so():
    rng = np.random.default_rng(0)
    series = [Series("many", np.arange(20_000), rng.random(20_000)), Series("few", np.arange(50), np.zeros(50))]
    chart = scatter_chart(series, **LABELS)
    assert chart == scatter_chart(series, **LABELS)
    root = parsed(chart)
    many = sum(path.get("d").count("h0") for path in drawn(root, "kept"))
    few = sum(len(group.findall(f"{SVG}use")) for group in marks(root))
    assert (many, few) == (2950, 50)
    assert "3,000 of 20,050 points drawn, chosen at random." in texts(parsed(chart))


def test_what_cannot_be_drawn_is_counted():
    y = np.array([1.0, 0.0, -2.0, np.inf, 3.0])
    shown = texts(parsed(line_chart([Series("a", np.arange(1, 6), y)], **LABELS | {"y": Axis("y", log=True)})))
    assert "Too large or not positive, so not shown: 3 values." in shown
    shown = texts(
        parsed(line_chart([Series("a", np.arange(5), np.arange(5))], **LABELS | {"y": Axis("y", shown=(0, 2))}))
    )
    assert "Beyond the range shown: 2 values." in shown
    values = np.array([0.1, 0.2, 5.0, np.nan])
    shown = texts(parsed(histogram_chart([("a", values)], title="t", x=Axis("x", shown=(0, 1)))))
    assert "Beyond the range shown: 1 a." in shown
    assert "Too large or missing, so not shown: 1 value." in shown


def test_missing_values_are_gaps_of_a_line():
    y = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    lines = drawn(parsed(line_chart([Series("", np.arange(5), y)], **LABELS)), "kept")
    assert [line.get("d").count("M") for line in lines] == [2]


def test_a_histogram_counts():
    chart = histogram_chart([("a", np.array([0.1, 0.1, 0.9]))], title="t", x=Axis("x", shown=(0, 1)), bins=2)
    (bars,) = (path for path in parsed(chart).iter(f"{SVG}path") if "fill: var(--rp-kept)" in path.get("style", ""))
    heights = np.unique([y for _, y in coordinates(bars)])
    top, half, floor = heights
    assert floor - top == pytest.approx(2 * (floor - half), abs=0.3)


def test_a_picture_is_a_png_of_the_array():
    array = np.array([[0.0, 0.5], [1.0, 0.0], [2.0, -3.0]])
    root = parsed(inline_svg(lambda ax: draw_picture(ax, array, (0.0, 1.0), scale=False), "t"))
    (image,) = root.iter(f"{SVG}image")
    kind, data = image.get("href").split(",")
    assert kind == "data:image/png;base64"
    pixels = imread(io.BytesIO(base64.b64decode(data)))[..., 0]
    upright = pixels if "scale(1 -1)" not in image.get("transform", "") else pixels[::-1]
    rows, columns = (
        np.linspace(0, size, 2 * count + 1).astype(int)[1::2] for size, count in zip(upright.shape, (3, 2), strict=True)
    )
    np.testing.assert_allclose(upright[np.ix_(rows, columns)], [[0, 0.5], [1, 0], [1, 0]], atol=0.01)


def test_dots_are_one_path_and_names_are_unique_on_a_page():
    x = np.arange(500.0)
    charts = [scatter_chart([Series("a", x, x), Series("b", x, -x)], **LABELS | {"title": t}) for t in ("one", "two")]
    root = parsed(charts[0])
    assert sum(len(path.get("d").split("h0")) - 1 for path in drawn(root, "kept")) >= 500
    names = [element.get("id") for chart in charts for element in parsed(chart).iter() if element.get("id")]
    assert len(names) == len(set(names))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', charts[0]))
    assert used <= {element.get("id") for element in root.iter()}
    assert len(charts[0]) < 60_000


def test_a_chart_that_stands_alone_carries_both_palettes():
    chart = standalone_svg(line_chart([Series("a", np.arange(3.0), np.arange(3.0))], **LABELS))
    style = parsed(chart).find(f"{SVG}style").text
    assert "prefers-color-scheme:dark" in style
    used = set(re.findall(r"var\((--rp-[a-z0-9]+)\)", chart))
    assert used <= set(re.findall(r"(--rp-[a-z0-9]+):", style))


def test_what_cannot_be_a_chart_is_refused(case):
    for call, message in [
        (lambda: line_chart([Series("a", np.arange(3), np.arange(2))], **LABELS), "one y for every x"),
        (
            lambda: line_chart([Series("a", np.arange(3), np.arange(3), np.arange(2), np.arange(3))], **LABELS),
            "the band of",
        ),
        (lambda: standalone_svg("<svg></svg>"), "needs a chart"),
    ]:
        with case(message), pytest.raises(ValueError, match=message):
            call()


def test_numbers_are_written_for_people():
    written = {0: "0", 1234: "1,234", 0.0714: "0.0714", 1.0: "1", -2.5: "−2.50", 1e-7: "1.00e−7", 3.2e9: "3.20e9"}
    written |= {np.nan: "–", np.inf: "∞", -np.inf: "−∞"}
    assert {value: short_number(value) for value in written} == written
