"""FitDiagnostics shared by the tests of the report, and a reader of pages."""

from __future__ import annotations

import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import robustphase as rp
from robustphase.report import FitDiagnostics, ManyDiagnostics, render_report

#: A file name that would become markup if it were not escaped.
HOSTILE = "<img src=x onerror=alert(1)>\"'&.npz"
SIDE = 10
#: Of many signals, the one without any, and how they lie on the detector.
DEAD, SHAPE = 5, (3, 4)


class Page(HTMLParser):
    """A page as lists: its elements with their attributes, its text, and the values under its keys."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.elements.append((tag, found))
        if "data-key" in found and "data-value" in found:
            self.values.setdefault(found["data-key"], []).append(found["data-value"])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def rows(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == "tr" and name in attributes]


def spoilt_world():
    """A picture behind contaminated data with a background, in which samples are bad for every reason."""
    world = rp.simulate.make_world(
        n=SIDE**2, m=3000, contamination=0.1, attack="cloud", noise_mean=1.0, signal="image", seed=0
    )
    A, y, rng = world.A.copy(), world.y.copy(), np.random.default_rng(0)
    bad = np.flatnonzero(world.touched)
    A[bad[:60]] = 3 * rng.standard_normal((60, SIDE**2))
    A[bad[60:120]], y[bad[60:120]] = rng.standard_normal((60, SIDE**2)), rng.uniform(20, 30, 60)
    A[bad[120:140], 3], y[bad[140:150]], y[bad[150:160]] = np.nan, np.inf, 1e200
    groups = {"norm": bad[:60], "residual": bad[60:120], "nonfinite": bad[120:160], "direction": bad[160:]}
    return world, A, y, groups


@pytest.fixture(scope="session")
def spoilt():
    return spoilt_world()


@pytest.fixture(scope="session")
def diagnostics(spoilt):
    world, A, y, _ = spoilt
    model = rp.RobustPhaseRetrieval(0.12, noise_mean="unknown", nonfinite="drop", random_state=3).fit(A, y)
    found = FitDiagnostics.of(model, A, y, truth=world.truth, image_shape=(SIDE, SIDE))
    return found.from_where(HOSTILE, command=f"robustphase fit '{HOSTILE}'")


@pytest.fixture(scope="session")
def plain():
    """A small fit without truth, picture or background."""
    world = rp.simulate.make_world(n=12, m=400, contamination=0.1, attack="huge", seed=1)
    model = rp.RobustPhaseRetrieval("auto").fit(world.A, world.y)
    return FitDiagnostics.of(model, world.A, world.y)


def quietly(model, A, y, **options):
    """A fit to data of which some columns are dead, which is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(A, y, **options)


@pytest.fixture(scope="session")
def pixels():
    """Twelve pixels behind rows of which 20 are bad for all; one pixel is dead."""
    rng = np.random.default_rng(0)
    A, X = rng.standard_normal((500, 9)), rng.standard_normal((9, 12))
    Y = (A @ X) ** 2 + rng.standard_t(3, (500, 12))
    Y[rng.random(Y.shape) < 0.04] = 200.0
    Y[:, DEAD] = 3.0
    A[:20] = rng.standard_normal((20, 9))
    return A, Y


@pytest.fixture(scope="session")
def model_of_many(pixels):
    return quietly(rp.RobustPhaseRetrieval(0.12), *pixels)


@pytest.fixture(scope="session")
def many(model_of_many, pixels):
    A, Y = pixels
    found = ManyDiagnostics.of(model_of_many, A, Y.reshape(500, *SHAPE), image_shape=(3, 3))
    return found.from_where("<b>frames", message="mind <this>.")


@pytest.fixture(scope="session")
def comparisons(diagnostics):
    rng = np.random.default_rng(0)
    return [
        {
            "method": "robustphase",
            "relative_error": diagnostics.true_error,
            "seconds": 1.25,
            "verdict": "recovered",
            "signal": -diagnostics.signal,
            "highlight": True,
        },
        {
            "method": "<script>alert(2)</script>",
            "relative_error": float("inf"),
            "seconds": None,
            "verdict": "lost <b>badly</b>",
            "signal": rng.standard_normal(SIDE**2),
        },
        {"method": "no picture", "relative_error": 0.31},
    ]


@pytest.fixture(scope="session")
def page(diagnostics, comparisons):
    return render_report(diagnostics, comparisons)


@pytest.fixture(scope="session")
def plain_page(plain):
    return render_report(plain)


@pytest.fixture(scope="session")
def read():
    return Page
