"""Accelerated tours: ``method.acceleration``."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.accelerations": {
            "anderson": "mtcd.methods.tours.anderson:Anderson",
            "conjugate": "mtcd.methods.tours.conjugate:Conjugate",
            "momentum": "mtcd.methods.tours.momentum:Momentum",
        },
        "mtcd.default_methods": {
            "smooth": "mtcd.methods.tours.defaults:smooth_method",
            "l1": "mtcd.methods.tours.defaults:l1_method",
        },
    },
)
