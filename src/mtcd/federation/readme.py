"""README.txt of a kit: what its person has to do."""

from __future__ import annotations

from mtcd.federation.kit_schema import KitConfig


def readme(kit: KitConfig, has_server: bool) -> bytes:
    """The text."""
    paragraphs = [
        f"Kit of {kit.name!r} in the federation {kit.federation!r}",
        f"Put this folder on the host that others reach at {kit.address}, and let nobody else read it: key.pem is what "
        "proves who you are. Delete other copies. Never send key.pem or alignment.key to anybody.",
        "Install what it takes:\n\n    pip install 'mtcd[federation]'",
        _start(kit),
        _talks(kit),
    ]
    if not kit.is_server:
        paragraphs += [_labels(kit, has_server), _alignment(kit)]
    paragraphs.append(
        "Does the founder send you new files (party.yaml, revoked.pem, or a whole kit after a renewal)? Put them over "
        "the old ones and start again. If key.pem may have been seen by somebody else, tell the founder at once."
    )
    return ("\n\n".join(paragraphs) + "\n").encode()


def _start(kit: KitConfig) -> str:
    if kit.is_server:
        return "Start the server:\n\n    mtcd server kits/server"
    data = "" if kit.data.table is not None else " --data table.csv"
    return f"Start your party, with your own table, which stays on your host:\n\n    mtcd party kits/{kit.name}{data}"


def _talks(kit: KitConfig) -> str:
    listed = "\n".join(f"    {name} at {peer.address}" for name, peer in kit.peers.items())
    return (
        f"It listens at {kit.listen or kit.address} and talks to these, and to nobody else:\n\n{listed or '    (none)'}"
    )


def _labels(kit: KitConfig, has_server: bool) -> str:
    told = ["all parties"] if "parties" in kit.labels.shared_with else []
    told += ["the server"] if has_server and "server" in kit.labels.shared_with else []
    who = "You hold" if kit.name == kit.labels.held_by else f"{kit.labels.held_by!r} holds"
    return f"{who} the labels. They are told to: {' and '.join(told) or 'nobody'}."


def _alignment(kit: KitConfig) -> str:
    return {
        "psi": "Samples are matched by their ids with private set intersection: nobody learns ids that are not theirs.",
        "hashed": "Samples are matched by keyed hashes of their ids: who has alignment.key can test guesses of ids.",
        "given order": "Samples are not matched: the rows of all parties must be the same samples in the same order.",
    }[kit.alignment]
