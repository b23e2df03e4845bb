"""The administrator's commands: create all credentials bundles; renew, revoke or move one; list them."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from mtcd.core.errors import ConfigError, MtcdError, system_reason
from mtcd.core.optional import INSTALL_WHERE, install
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import SECRET_BYTES
from mtcd.federation.credentials.bundle_schema import BundleConfig, as_yaml, bundle_config
from mtcd.federation.credentials.certificates import Issued
from mtcd.federation.credentials.credentials import EXPIRY_FILE, expiry_file
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.file import check_keys, network_of, read_federation
from mtcd.federation.names import AUTHORITY, OPERATOR, parse_address
from mtcd.federation.own_code import FOLDER, own_names
from mtcd.federation.schema import Federation, PartySection, PlaceSection
from mtcd.federation.transport import PARTIES_FILE, connects_to


def readme(bundle: BundleConfig, has_server: bool) -> bytes:
    """The text of the README."""
    # Nobody connects to a party that only dials out, so its host has no name that others know.
    host = "your own host"
    if bundle.address is not None:
        host = f"the host that others reach at {bundle.address}"
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
    # The server has the fusion module alone: code of the clients' networks is never run there.
    if bundle.is_server:
        names.pop("client", None)
    if not names:
        return []
    listed = ", ".join(f"{name} (model.{key})" for key, name in names.items())
    modules = dict.fromkeys(name.partition(":")[0] for name in names.values())
    files = [f"--code {module.replace('.', '/')}.py" for module in modules]
    same = ""
    if "fusion" in names:
        same = " The file with the fusion module must be the same for all: its sha256 is compared."
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
    out, near = [], []
    for name, peer in bundle.peers.items():
        if connects_to(bundle, name):
            out.append(f"    {name} at {peer.address}")
        else:
            near.append(f"    {name}")

    # The operator connects to whoever listens. It is not among the peers of a party, which never
    # calls it.
    if not bundle.is_operator and bundle.address is not None:
        near.append("    operator")
    listed = "It opens TCP connections (TLS) to:\n\n" + ("\n".join(out) or "    (none)")
    if bundle.address is None:
        return f"{listed}\n\nIt accepts no connections."
    where = f"at {bundle.listen or bundle.address}"
    return f"{listed}\n\nIt accepts TCP connections (TLS) {where} from:\n\n" + "\n".join(near)


def _labels(bundle: BundleConfig, has_server: bool) -> str:
    receivers = []
    if "parties" in bundle.labels.shared_with:
        receivers.append("all parties")
    if has_server and "server" in bundle.labels.shared_with:
        receivers.append("the server")

    holder = f"{bundle.labels.held_by!r} holds"
    if bundle.name == bundle.labels.held_by:
        holder = "You hold"
    weights = ""
    if bundle.labels.weights is not None:
        weights = f" So are the weights in column {bundle.labels.weights!r}."
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


@dataclass(frozen=True)
class Standing:
    """The state of a party's certificate."""

    name: str
    address: str | None  # the operator has none
    until: datetime
    revoked: bool

    @property
    def days_left(self) -> int:
        """Whole days until the certificate expires; negative after that."""
        return (self.until - datetime.now(UTC)).days

    @property
    def state(self) -> str:
        """``valid``, ``expired`` or ``revoked``."""
        # A plain renewal replaces an expired certificate, a revoked one needs a new name as well:
        # of both, the state that asks for more is shown.
        if self.revoked:
            return "revoked"
        return "expired" if self.days_left < 0 else "valid"


def init_federation(path: Path, out: Path, days: int) -> tuple[Authority, tuple[str, ...]]:
    """Create the authority and all bundles in a new or empty folder, atomically."""
    federation, notes = read_federation(path)
    _check_empty(out)
    authority = Authority.found(federation, secrets.token_bytes(SECRET_BYTES).hex().encode())
    # All certificates are issued before a folder is made: a federation file with a fault in it
    # leaves nothing behind.
    made = {name: authority.sign(name, 1, days) for name in federation.members}
    out, writing = out.absolute(), None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # readable by its owner only
        writing = Path(tempfile.mkdtemp(dir=out.parent, prefix=".mtcd-"))
        (writing / AUTHORITY).mkdir(mode=0o700)
        authority.save(writing, creation=True)
        _write_bundles(authority, writing, made)
        os.replace(writing, out)  # replaces an empty folder only
    except OSError as error:
        raise MtcdError(
            f"The bundles could not be written to {out}: {system_reason(error)}."
        ) from None
    finally:
        if writing is not None:
            shutil.rmtree(writing, ignore_errors=True)
    return authority, notes


def renew(bundles: Path, name: str, days: int) -> Standing:
    """Issue a new key and certificate for a party. A party that was revoked gets a new certificate
    name."""
    authority = Authority.load(bundles)
    last = authority.last(name)
    # Peers that have not received the new revocation list still admit the certificate by its name.
    # So a revoked party must come back under another name; a plain renewal keeps the name, and no
    # peer needs a new file for it.
    made = authority.sign(name, last.generation + (last.revoked is not None), days)
    # The record goes to disk before the bundle does. After a crash in between, the certificate that
    # nobody has is listed, which is harmless; one in use that is not listed could never be revoked.
    authority.save(bundles)
    _write_bundles(authority, bundles, {name: made})
    return standing(authority, name)


def revoke(bundles: Path, name: str) -> bool:
    """Revoke the certificates of a party, and update all bundles; returns False if they were
    revoked before."""
    authority = Authority.load(bundles)
    # All bundles are written again even if the party was revoked before: an earlier attempt may
    # have been interrupted between the two steps below.
    new = authority.revoke(name)
    authority.save(bundles)
    _write_bundles(authority, bundles, {})
    return new


def move(
    bundles: Path, name: str, address: str, listen: str | None, days: int
) -> tuple[PartySection | PlaceSection, bool]:
    """Change the address of a party; returns its place, and whether it got a new key.

    A certificate is bound to a host, so another host needs a new one. A revoked party gets it when
    it is renewed.
    """
    authority = Authority.load(bundles)
    last = authority.last(name)
    if name == OPERATOR:
        raise ConfigError(
            "The operator accepts no connections and has no address: its bundle can be used on any "
            "host."
        )
    before = authority.federation.places[name]
    authority.federation = _moved(authority.federation, name, address, listen)
    after = authority.federation.places[name]
    if after == before:
        raise ConfigError(
            f"{name!r} is at {before.address} already. If a bundle is out of date, write all "
            f"bundles again: mtcd federation renew {bundles} {name}"
        )
    made = {}
    # The name of the host stands in the certificate; the port does not. A revoked party must not
    # get a valid certificate by moving.
    if last.revoked is None and _host(before) != _host(after):
        made[name] = authority.sign(name, last.generation, days)
    authority.save(bundles)
    _write_bundles(authority, bundles, made)
    return after, bool(made)


def standings(bundles: Path) -> list[Standing]:
    """The states of all certificates."""
    authority = Authority.load(bundles)
    return [standing(authority, name) for name in authority.federation.members]


def standing(authority: Authority, name: str) -> Standing:
    """The state of one certificate."""
    last, place = authority.last(name), authority.federation.places.get(name)
    address = None if place is None else place.address
    return Standing(name, address, last.until, last.revoked is not None)


def _moved(federation: Federation, name: str, address: str, listen: str | None) -> Federation:
    """The federation with another address of a party; its listening address stays, unless one is
    given."""
    # The change is made on the file's own keys and checked as a whole file is, so that an address
    # which another party has is refused here too.
    content = yaml.safe_load(as_yaml(federation))
    place = content["parties"][name] if name in federation.parties else content[name]
    place |= {"address": address} | ({} if listen is None else {"listen": listen})
    if name in federation.parties:
        place["dial_out_only"] = False  # it has an address now
    return check_keys(content, "The new address")


def _host(place: PartySection | PlaceSection) -> str | None:
    return None if place.address is None else parse_address(place.address).host


def _check_empty(out: Path) -> None:
    try:
        # `os.replace` could not put a folder in the place of a symbolic link, even of one to an
        # empty folder.
        if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
            raise ConfigError(
                f"{out} exists and is not an empty folder: choose another. New bundles would not "
                "work with those that the parties have; to replace one bundle, use: mtcd "
                "federation renew"
            )
    except OSError as error:
        raise ConfigError(
            f"{out} cannot be used ({error.strerror}): choose another folder."
        ) from None


def _write_bundles(authority: Authority, bundles: Path, made: dict[str, Issued]) -> None:
    """Update all bundles; those in ``made`` get a new key. Of bundles that were deleted here, the
    public part is written."""
    federation = authority.federation
    network = network_of(federation)
    certificates = authority.certificates()
    revoked = authority.revocations  # signed once, so that all bundles have the same bytes
    for name in federation.members:
        config = bundle_config(federation, name, network, certificates)
        files = {
            "party.yaml": as_yaml(config),
            "ca.pem": authority.issued.certificate_pem,
            "revoked.pem": revoked,
            "README.txt": readme(config, federation.server is not None),
            EXPIRY_FILE: expiry_file({peer: authority.last(peer).until for peer in config.peers}),
        }
        if name in made:
            files |= _private_part(config, made[name], authority.secret)
        (bundles / name).mkdir(mode=0o700, exist_ok=True)
        write_files(bundles / name, files)


def _private_part(config: BundleConfig, made: Issued, secret: bytes) -> dict[str, bytes]:
    files = {"key.pem": made.key_pem, "cert.pem": made.certificate_pem}
    # Server and operator do not get the secret of the parties: what is encrypted under it passes
    # through the server.
    if config.name in config.parties:
        files[PARTIES_FILE] = secret
    return files
