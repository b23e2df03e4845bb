"""Accelerated tours: ``method.acceleration``."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.accelerations": {
            "anderson": "mtcd.methods.tours.anderson:Anderson",
            "conjugate": "mtcd.methods.tours.conjugate:Conjugate",
            "momentum": "mtcd.methods.tours.momentum:Momentum",
        },
    },
)
