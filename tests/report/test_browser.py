"""The report in a real browser: desk and phone, light and dark.

The tests run where Chromium and Playwright's Python package are present; ``.ci/install-chromium`` installs the first, the
test dependencies the second. Playwright's own browsers are not needed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from robustphase.report import load_result, render_report, save_result
from robustphase.report.rejection_causes import counts, worst_samples

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need pip install playwright")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
#: The least contrast of text that WCAG 2.1 (AA) asks for.
CONTRAST = 4.5


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = (shutil.which(name) for name in ("/usr/bin/chromium", *names))
    return next((path for path in found if path), None)


pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium: .ci/install-chromium installs Debian's")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        instance = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield instance
        instance.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory, diagnostics, page, plain, plain_page, many):
    """The spoilt picture, the plain fit and many signals, each as a result file and a report."""
    folder = tmp_path_factory.mktemp("browser")
    shown = {"picture": (diagnostics, page), "plain": (plain, plain_page), "many": (many, render_report(many))}
    for name, (kept, seen) in shown.items():
        save_result(folder / f"{name}.npz", kept)
        (folder / f"{name}.html").write_text(seen, "utf-8")
    return folder


def opened(browser, path, size, scheme):
    """A page and a list that fills with everything that goes wrong on it."""
    width, height = SIZES[size]
    page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("requestfailed", lambda sent: troubles.append(f"failed: {sent.url[:80]}"))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda sent: troubles.append(f"network: {sent.url[:80]}") if sent.url[:4] == "http" else None)
    page.goto(path.as_uri(), wait_until="load")
    return page, troubles


@pytest.fixture(scope="module", params=[(size, scheme) for size in SIZES for scheme in ("light", "dark")], ids="-".join)
def show(request, browser, files):
    """Shows a report in one of the four ways; every report is opened once, so the tests may only look."""
    size, scheme = request.param
    pages = {name: opened(browser, files / f"{name}.html", size, scheme) for name in ("picture", "plain", "many")}
    folder = os.environ.get("ROBUSTPHASE_SCREENSHOTS")
    for name, (page, _) in pages.items() if folder else ():
        page.screenshot(path=Path(folder, f"{name}-{size}-{scheme}.png"), full_page=True)
    yield pages.__getitem__
    for page, _ in pages.values():
        page.context.close()


@pytest.fixture
def alone(browser, files):
    """A page of its own, in the dark, for a test that changes it."""
    page, troubles = opened(browser, files / "plain.html", "desk", "dark")
    yield page, troubles
    page.context.close()


@pytest.mark.parametrize("name", ["picture", "plain", "many"])
def test_the_page_renders_without_trouble_and_fits_its_width(show, name):
    page, troubles = show(name)
    assert troubles == []
    assert page.locator("h1").is_visible()
    charts = page.locator("svg.rp-chart")
    assert charts.count() >= 5
    assert all(box["width"] > 100 and box["height"] > 60 for box in map(bounding_box, charts.all()))
    width, seen = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= seen
    # Whatever is wider than the page scrolls inside its own frame.
    sticking_out = page.evaluate(
        """() => [...document.querySelectorAll('main *')].filter(
            e => !e.closest('.scroll table, svg') && e.getBoundingClientRect().right > window.innerWidth + 0.5
        ).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert sticking_out == []


def bounding_box(locator):
    return locator.bounding_box()


def test_the_numbers_shown_are_those_of_the_result_file(show, files):
    page, _ = show("picture")
    stored = load_result(files / "picture.npz")
    tiles = page.eval_on_selector_all(
        ".tiles [data-key]", "all => all.map(e => [e.dataset.key, e.dataset.value, e.innerText])"
    )
    shown = {key: value for key, value, _ in tiles}
    for name in ("certificate", "noise_mean", "noise_scale", "expected_error", "true_error", "seconds"):
        assert float(shown[name]) == getattr(stored, name)
    assert int(shown["rejected"]) == stored.rejected.sum()
    # What is written is the value, rounded.
    written = {key: text for key, _, text in tiles}
    assert float(written["certificate"].rstrip("%")) == pytest.approx(100 * stored.certificate, abs=0.051)
    assert float(written["noise_mean"].replace("−", "-")) == pytest.approx(stored.noise_mean, rel=5e-3)
    assert int(written["rejected"].replace(",", "")) == stored.rejected.sum()
    for name, count in counts(stored).items():
        assert int(page.inner_text(f"[data-key=reason-{name}]").replace(",", "")) == count
    rows = page.eval_on_selector_all("[data-table=worst] tbody tr", "all => all.map(e => +e.dataset.row)")
    assert rows == [sample.row for sample in worst_samples(stored)]
    assert page.inner_text("[data-key=fingerprint]") == stored.fingerprint


def test_a_hostile_file_name_is_shown_and_does_nothing(show, files):
    page, troubles = show("picture")
    stored = load_result(files / "picture.npz")
    assert stored.data_name in page.inner_text(".kicker")
    assert page.title() == f"robustphase: {stored.data_name}"
    assert page.locator("img, script, [onerror]").count() == 0
    assert "<script>alert(2)</script>" in page.inner_text("[data-table=comparison]")
    assert troubles == []


def test_the_policy_of_the_page_stops_what_escaping_would_miss(alone):
    page, troubles = alone
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')")
    page.wait_for_timeout(200)
    assert page.title() != "1"
    assert any("Content Security Policy" in trouble for trouble in troubles)


@pytest.mark.parametrize("name", ["picture", "plain", "many"])
def test_labels_neither_overlap_nor_leave_their_chart(show, name):
    page, _ = show(name)
    wrong = page.evaluate(
        """() => {
            const wrong = [];
            for (const chart of document.querySelectorAll('svg.rp-chart')) {
                const frame = chart.getBoundingClientRect();
                const texts = [...chart.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
                texts.forEach(([said, box], i) => {
                    if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                        box.top < frame.top - 1 || box.bottom > frame.bottom + 1) wrong.push(`outside: ${said}`);
                    for (const [other, place] of texts.slice(i + 1)) {
                        const across = Math.min(box.right, place.right) - Math.max(box.left, place.left);
                        const down = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
                        // Line boxes are taller than their letters, so a touch of neighbouring lines is no overlap.
                        if (across > 1 && down > 0.3 * box.height) wrong.push(`overlap: ${said} | ${other}`);
                    }
                });
            }
            return wrong;
        }"""
    )
    assert wrong == []


@pytest.mark.parametrize("name", ["picture", "plain", "many"])
def test_text_stands_out_from_its_ground(show, name):
    page, _ = show(name)
    contrasts = page.evaluate(
        """() => {
            const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            const parts = text => text.match(/[\\d.]+/g).map(Number);
            const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
            const ground = e => {
                for (let up = e; up; up = up.parentElement) {
                    const [r, g, b, a = 1] = parts(getComputedStyle(up).backgroundColor);
                    if (a > 0) return [r, g, b];
                }
                return [255, 255, 255];
            };
            return [...document.querySelectorAll('main *')]
                .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && !e.closest('title'))
                .map(e => {
                    const style = getComputedStyle(e), svg = e.tagName === 'text';
                    const ink = light(parts(svg ? style.fill : style.color)), paper = light(ground(e));
                    return [e.tagName + '.' + (e.getAttribute('class') || ''),
                            (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)];
                });
        }"""
    )
    assert len(contrasts) > 50
    assert [(where, round(ratio, 2)) for where, ratio in contrasts if ratio < CONTRAST] == []


def test_dark_is_dark_and_light_is_light(show):
    page, _ = show("plain")
    red, green, blue = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    wanted = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (red + green + blue < 150, red + green + blue > 700) == (wanted, not wanted)


def test_paper_is_light_whatever_the_screen_is(alone):
    page, _ = alone
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
