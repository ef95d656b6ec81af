"""The check of the built pages finds dead links and whatever would be loaded from the network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "check_pages.py"
SPEC = importlib.util.spec_from_file_location("check_pages", SCRIPT)
check_pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_pages)

GOOD = """<html><head><link rel="stylesheet" href="_static/a.css"><link rel="canonical" href="https://example.org/">
<script src="_static/a.js?v=1"></script></head><body id="here"><a href="#here">1</a> <a href="sub/other.html#there">2</a>
<a href="https://example.org/elsewhere">3</a> <a href="sub/">4</a> <img src="a.png" srcset="a.png, a.png 2x">
<img src="data:image/png;base64,AAAA"></body></html>"""


@pytest.fixture
def site(tmp_path):
    for name, text in {
        "index.html": GOOD,
        "sub/other.html": '<p id="there"><a href="../index.html#here">back</a></p>',
        "sub/index.html": "<p>",
        "_static/a.css": "body { background: url(../a.png) }",
        "_static/a.js": "",
        "_static/macros.html": '<a href="{{ template }}">',
        "a.png": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_site_without_faults_has_none(site):
    assert check_pages.faults(site) == []


def test_each_kind_of_fault_is_named(case, site):
    for old, new, fault in [
        ("sub/other.html#there", "sub/gone.html", "index.html: nothing behind sub/gone.html"),
        ("sub/other.html#there", "sub/other.html#gone", "index.html: nothing behind sub/other.html#gone"),
        ('href="#here"', 'href="#gone"', "index.html: nothing behind #gone"),
        ('src="a.png"', 'src="b.png"', "index.html: nothing behind b.png"),
        ("a.png 2x", "b.png 2x", "index.html: nothing behind b.png"),
        ("_static/a.js?v=1", "https://cdn.example/a.js", "index.html: loads https://cdn.example/a.js"),
        ("_static/a.css", "//cdn.example/a.css", "index.html: loads //cdn.example/a.css"),
        ("</head>", "<style>@import 'https://x.org/a.css'</style></head>", "index.html: loads https://x.org/a.css"),
    ]:
        with case(fault):
            (site / "index.html").write_text(GOOD.replace(old, new), encoding="utf-8")
            assert check_pages.faults(site) == [fault]


@pytest.mark.parametrize(
    ("font", "fault"), [("https://fonts.example/f.woff", "loads"), ("gone.woff", "nothing behind")]
)
def test_fonts_that_are_elsewhere_or_missing_are_named(site, font, fault):
    (site / "_static" / "a.css").write_text(f"@font-face {{ src: url('{font}') }}", encoding="utf-8")
    assert check_pages.faults(site) == [f"_static/a.css: {fault} {font}"]


def test_a_folder_without_pages_is_a_fault(tmp_path):
    assert check_pages.faults(tmp_path)
