"""README.txt of a credentials bundle: instructions for its user."""

from __future__ import annotations

from mtcd.core.optional import INSTALL_WHERE, install
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.own_code import FOLDER
from mtcd.federation.own_code_files import own_names
from mtcd.federation.transport import connects_to


def readme(bundle: BundleConfig, has_server: bool) -> bytes:
    """The text of the README."""
    host = (
        "your own host"
        if bundle.address is None
        else f"the host that others reach at {bundle.address}"
    )
    paragraphs = [
        f"credentials bundle of {bundle.name!r} in the federation {bundle.federation!r}",
        f"Put this folder on {host}, and keep it private: key.pem proves who you are. Delete other "
        "copies. Never send key.pem or parties.key to anyone.",
        f"Install mtcd with the federation extra, {INSTALL_WHERE}:\n\n    {install('federation')}",
        _start(bundle),
        _talks(bundle),
    ]
    if bundle.name in bundle.parties:
        paragraphs += [_labels(bundle, has_server), _predictions(bundle), _alignment(bundle)]
    if not bundle.is_operator:
        paragraphs += _code(bundle)
    paragraphs.append(
        "If the administrator sends you new files (party.yaml, revoked.pem, or a whole bundle "
        "after a renewal), replace the old ones and restart. If anyone else may have seen key.pem, "
        "notify the administrator at once."
    )
    return ("\n\n".join(paragraphs) + "\n").encode()


def _code(bundle: BundleConfig) -> list[str]:
    """The paragraph on custom networks: which code runs here, and how to agree to it."""
    names = own_names(bundle.model)
    if bundle.is_server:
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
        "host with your permissions, so use your own code, or code that you have read. Name the "
        "file when you start, to train and to predict:\n\n"
        f"    {' '.join(files)}\n\n"
        f"Files in the folder {FOLDER!r} of this bundle run only if you agree to each by its "
        f"sha256: --agree-code SHA256. Read them first.{same}"
    ]


def _start(bundle: BundleConfig) -> str:
    if bundle.is_operator:
        return (
            "Watch the federation, and stop it:\n\n"
            "    mtcd federation status bundles/operator\n"
            "    mtcd federation logs bundles/operator\n"
            "    mtcd federation stop bundles/operator"
        )
    if bundle.is_server:
        return "Start the server:\n\n    mtcd server bundles/server"
    data = "" if bundle.data.table is not None else " --data table.csv"
    return (
        "Start your party, with your own table, which stays on your host:\n\n"
        f"    mtcd party bundles/{bundle.name}{data}"
    )


def _talks(bundle: BundleConfig) -> str:
    """For the administrator of a firewall: which connections go out, and which come in."""
    out = [
        f"    {name} at {peer.address}"
        for name, peer in bundle.peers.items()
        if connects_to(bundle, name)
    ]
    near = [f"    {name}" for name in bundle.peers if not connects_to(bundle, name)]
    near += [] if bundle.is_operator or bundle.address is None else ["    operator"]
    listed = "It opens TCP connections (TLS) to:\n\n" + ("\n".join(out) or "    (none)")
    if bundle.address is None:
        return f"{listed}\n\nIt accepts no connections."
    where = f"at {bundle.listen or bundle.address}"
    return f"{listed}\n\nIt accepts TCP connections (TLS) {where} from:\n\n" + "\n".join(near)


def _labels(bundle: BundleConfig, has_server: bool) -> str:
    receivers = ["all parties"] if "parties" in bundle.labels.shared_with else []
    receivers += ["the server"] if has_server and "server" in bundle.labels.shared_with else []
    holder = (
        "You hold" if bundle.name == bundle.labels.held_by else f"{bundle.labels.held_by!r} holds"
    )
    weights = (
        f" So are the weights in column {bundle.labels.weights!r}."
        if bundle.labels.weights is not None
        else ""
    )
    return (
        f"{holder} the labels. They are shared with: "
        f"{' and '.join(receivers) or 'no other party'}.{weights}"
    )


def _predictions(bundle: BundleConfig) -> str:
    return (
        f"Only {'you' if bundle.name == bundle.seen_by else repr(bundle.seen_by)} can see the "
        "predictions of new samples."
    )


def _alignment(bundle: BundleConfig) -> str:
    return {
        "psi": "Samples are matched by their ids with private set intersection: no party learns ids "
        "that it lacks.",
        "hashed": "Samples are matched by keyed hashes of their ids: anyone who has parties.key can test "
        "guessed ids.",
        "given order": "Samples are not matched: the rows of all parties must be the same samples in the same "
        "order.",
    }[bundle.alignment]
