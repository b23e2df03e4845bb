"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mtcd.errors import MtcdError


def write_whole(path: Path, content: bytes | str) -> None:
    """Put the content there at once: nobody ever sees half a file, and what was there stays if this fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".mtcd-") as folder:
            writing = Path(folder) / path.name
            writing.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(writing, path)
    except OSError as error:
        raise MtcdError(f"{path} could not be written: {error.strerror or error}.") from None
