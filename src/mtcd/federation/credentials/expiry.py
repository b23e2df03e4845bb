"""When the certificates of peers expire, as the administrator knew when a bundle was written.

A party whose own certificate has expired cannot open a link, and so cannot tell anybody why it does
not come. Its peers can: they have the dates. A renewal changes nothing at the peers, whose bundles
keep the old date: therefore this is advice about peers that are missing, and nobody is refused by
it. In a file of its own, which versions without it do not miss.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

EXPIRY_FILE = "expiry.json"


def expiry_file(until: Mapping[str, datetime]) -> bytes:
    """The content of the file, given when the certificate of each peer expires."""
    dates = {name: when.isoformat() for name, when in until.items()}
    return json.dumps(dates, indent=1).encode()


def expired_peers(bundle: Path, among: Iterable[str]) -> str:
    """A sentence for each of these peers whose certificate has expired; "" if there is none.

    Parameters
    ----------
    bundle
        The folder of the credentials bundle. One without the file tells nothing.
    among
        The peers without a connection.

    Returns
    -------
    str
        The sentences, separated by spaces.
    """
    try:
        dates = json.loads((bundle / EXPIRY_FILE).read_text())
        until = {name: datetime.fromisoformat(dates[name]) for name in among if name in dates}
    except (OSError, ValueError, TypeError, RecursionError):
        return ""

    now = datetime.now(UTC)
    sentences = []
    for name, when in until.items():
        if when.replace(tzinfo=when.tzinfo or UTC) < now:
            sentences.append(
                f"The certificate of {name} expired on {when:%Y-%m-%d}, unless it has a newer one: "
                f"the administrator renews it with 'mtcd federation renew BUNDLES {name}'."
            )
    return " ".join(sentences)
