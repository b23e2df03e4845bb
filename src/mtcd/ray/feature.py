"""The engine on Ray."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.engines": {
            "ray": "mtcd.ray.settings:Ray",
        },
        "mtcd.workers": {
            "ray": "mtcd.ray.workers:RayWorkers",
        },
    },
    public_names={
        "Ray": "mtcd.ray.settings",
    },
)
