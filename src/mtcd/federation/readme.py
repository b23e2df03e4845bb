"""README.txt of a kit (credentials bundle): instructions for its user."""

from __future__ import annotations

from mtcd.core.optional import INSTALL_WHERE, install
from mtcd.federation.credentials.bundle_schema import KitConfig
from mtcd.federation.own_code import FOLDER
from mtcd.federation.own_code_files import own_names
from mtcd.federation.transport import connects_to


def readme(kit: KitConfig, has_server: bool) -> bytes:
    """The text of the README."""
    host = (
        "your own host" if kit.address is None else f"the host that others reach at {kit.address}"
    )
    paragraphs = [
        f"Kit (credentials bundle) of {kit.name!r} in the federation {kit.federation!r}",
        f"Put this folder on {host}, and keep it private: key.pem proves who you are. Delete other "
        f"copies. Never send "
        "key.pem or parties.key to anyone.",
        f"Install mtcd with the federation extra, {INSTALL_WHERE}:\n\n    {install('federation')}",
        _start(kit),
        _talks(kit),
    ]
    if kit.name in kit.parties:
        paragraphs += [_labels(kit, has_server), _predictions(kit), _alignment(kit)]
    if not kit.is_operator:
        paragraphs += _code(kit)
    paragraphs.append(
        "If the administrator sends you new files (party.yaml, revoked.pem, or a whole kit after a "
        "renewal), replace "
        "the old ones and restart. If anyone else may have seen key.pem, notify the administrator "
        "at once."
    )
    return ("\n\n".join(paragraphs) + "\n").encode()


def _code(kit: KitConfig) -> list[str]:
    """The paragraph on custom networks: which code runs here, and how to agree to it."""
    names = own_names(kit.model)
    if kit.is_server:
        names.pop("client", None)
    if not names:
        return []
    listed = ", ".join(f"{name} (model.{key})" for key, name in names.items())
    files = sorted(
        {f"--code {name.partition(':')[0].replace('.', '/')}.py" for name in names.values()}
    )
    same = (
        " The file with the fusion module must be the same for all: its sha256 is compared."
        if "fusion" in names
        else ""
    )
    return [
        f"The model has networks that are not built into mtcd: {listed}. Their code runs on your "
        f"host with your "
        "permissions, so use your own code, or code that you have read. Name the file when you "
        "start, to train and to "
        "predict:\n\n"
        f"    {' '.join(files)}\n\n"
        f"Files in the folder {FOLDER!r} of this kit run only if you agree to each by its sha256: "
        f"--agree-code SHA256. "
        f"Read them first.{same}"
    ]


def _start(kit: KitConfig) -> str:
    if kit.is_operator:
        return (
            "Watch the federation, and stop it:\n\n    mtcd federation status kits/operator\n"
            "    mtcd federation logs kits/operator\n    mtcd federation stop kits/operator"
        )
    if kit.is_server:
        return "Start the server:\n\n    mtcd server kits/server"
    data = "" if kit.data.table is not None else " --data table.csv"
    return f"Start your party, with your own table, which stays on your host:\n\n    mtcd party kits/{kit.name}{data}"


def _talks(kit: KitConfig) -> str:
    """For the administrator of a firewall: which connections go out, and which come in."""
    out = [
        f"    {name} at {peer.address}"
        for name, peer in kit.peers.items()
        if connects_to(kit, name)
    ]
    near = [f"    {name}" for name in kit.peers if not connects_to(kit, name)]
    near += [] if kit.is_operator or kit.address is None else ["    operator"]
    listed = "It opens TCP connections (TLS) to:\n\n" + ("\n".join(out) or "    (none)")
    if kit.address is None:
        return f"{listed}\n\nIt accepts no connections."
    where = f"at {kit.listen or kit.address}"
    return f"{listed}\n\nIt accepts TCP connections (TLS) {where} from:\n\n" + "\n".join(near)


def _labels(kit: KitConfig, has_server: bool) -> str:
    receivers = ["all parties"] if "parties" in kit.labels.shared_with else []
    receivers += ["the server"] if has_server and "server" in kit.labels.shared_with else []
    holder = "You hold" if kit.name == kit.labels.held_by else f"{kit.labels.held_by!r} holds"
    weights = (
        f" So are the weights in column {kit.labels.weights!r}."
        if kit.labels.weights is not None
        else ""
    )
    return f"{holder} the labels. They are shared with: {' and '.join(receivers) or 'no other party'}.{weights}"


def _predictions(kit: KitConfig) -> str:
    return f"Only {'you' if kit.name == kit.seen_by else repr(kit.seen_by)} can see the predictions of new samples."


def _alignment(kit: KitConfig) -> str:
    return {
        "psi": "Samples are matched by their ids with private set intersection: no party learns ids that it lacks.",
        "hashed": "Samples are matched by keyed hashes of their ids: anyone who has parties.key can test guessed ids.",
        "given "
        "order": "Samples are not matched: the rows of all parties must be the same samples in the same order.",
    }[kit.alignment]
