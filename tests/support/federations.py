"""Small federations for tests."""

from pathlib import Path
from typing import Any

import yaml

FILE: dict[str, Any] = {
    "name": "clinics",
    "parties": {
        "a": "127.0.0.1:7001",
        "b": {
            "address": "127.0.0.1:7002",
            "data": {"table": "b.csv", "id": "patient", "columns": ["x", "y"]},
        },
        "c": "c.example.org:7001",
    },
    "server": "127.0.0.1:7000",
    "labels": {"held_by": "b", "column": "outcome", "shared_with": "parties"},
    "network": {"links": [["a", "b"], ["b", "c"]]},
    "method": {"kind": "mtcd", "tokens": 1, "hops": 4},
    "stop": {"iterations": 100},
}


def changed(**changes: Any) -> dict[str, Any]:
    """The file with some keys changed, written section__key; None takes a key away."""
    content: dict[str, Any] = yaml.safe_load(yaml.safe_dump(FILE, sort_keys=False))
    for path, value in changes.items():
        *sections, key = path.split("__")
        place = content
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
        if value is None:
            del place[key]
    return content


def written(folder: Path, **changes: Any) -> Path:
    """Such a file on disk."""
    path = folder / "federation.yaml"
    path.write_text(yaml.safe_dump(changed(**changes), sort_keys=False, allow_unicode=True))
    return path
