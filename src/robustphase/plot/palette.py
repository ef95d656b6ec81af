"""One colour and one mark for every kind of thing, in every picture, so that neither colour nor shape alone has to be told."""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """How a kind of thing is drawn."""

    colour: str
    marker: str


INK, MUTED, GRID = "#19212b", "#566170", "#dfe4ea"

#: What there is to see. The causes of rejection are those of ``samples.CAUSES``.
MARKS = {
    "kept": Mark("#0a6c89", "o"),
    "residual": Mark("#b3470f", "x"),
    "norm": Mark("#7a4aa5", "^"),
    "direction": Mark("#a8324a", "s"),
    "nonfinite": Mark("#7d6310", "+"),
    "truth": Mark("#3c7a34", "D"),
    "start": Mark("#626b76", "v"),
    "model": Mark("#3757b5", "*"),
}
#: Where the cause of a rejection is not known, it has the most frequent one's mark.
MARKS["rejected"] = MARKS["residual"]
#: The answer is made of what was kept.
MARKS["recovered"] = MARKS["kept"]

#: Colour maps of pictures, phases and numbers with a sign; that of phases is cyclic and leaves the brightness to the modulus.
GREY, CYCLIC, SIGNED = "gray", "hsv", "RdBu_r"
