"""Twin tours: ``acceleration: twin``."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={"mtcd.accelerations": {"twin": "mtcd.methods.tours.twin.settings:Twin"}},
)
