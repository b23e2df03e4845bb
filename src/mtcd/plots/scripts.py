"""Names of columns and classes in pictures, in any script."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.font_manager import fontManager

OTHER_SCRIPTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)


@contextmanager
def any_script() -> Iterator[None]:
    """The context in which names of a user's are drawn.

    Matplotlib's own font lacks many scripts: those of this machine stand in. A letter that none has
    is a box, without a warning for each on the user's screen.
    """
    installed = set(fontManager.get_font_names())
    families = [
        *mpl.rcParams["font.family"],
        *(name for name in OTHER_SCRIPTS if name in installed),
    ]
    with mpl.rc_context({"font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield
