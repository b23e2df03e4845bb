"""The engine on Ray."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.engines": {
            "ray": "mtcd.ray.settings:Ray",
        },
    },
    public_names={
        "Ray": "mtcd.ray.settings",
    },
)
