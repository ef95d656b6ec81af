"""Array type of this room."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
