"""What sealed tours change in a federation."""

from __future__ import annotations

from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.participant.kinds import PartyKind, PartyPrivacy
from mtcd.federation.participant.participant import Participant
from mtcd.federation.participant.table import PartyTable
from mtcd.federation.schema import Federation
from mtcd.methods.method import Method
from mtcd.privacy.sealed.settings import SealedTours


class SealedPrivacy(PartyPrivacy):
    """Tokens are encrypted, and labels stay with their holder."""

    shares_labels = False

    def participant(self, kind: PartyKind, bundle: Bundle, table: PartyTable | None) -> Participant:
        """Of a linear model: the section is checked against others."""
        module = find("mtcd.privacy.sealed.participant")
        return module.SealedParticipant(bundle, table)  # type: ignore[no-any-return]

    def packages(self) -> tuple[str, ...]:
        return ("tenseal", "zstandard")

    def check_labels(self, federation: Federation, method: Method) -> None:
        """Refuse what would tell labels or scores of a sealed training to others."""
        labels = federation.labels
        if labels.shared_with:
            raise ConfigError(
                "labels.shared_with: in a sealed training labels stay with their holder: leave it "
                "out."
            )
        if labels.weights is not None:
            raise ConfigError(
                "labels.weights: privacy.mode: sealed takes no weights of samples: leave them out."
            )
        if federation.holdout is not None:
            raise ConfigError(
                f"holdout: {labels.held_by!r} would learn the others' scores of the held-out "
                "samples, which a sealed training does not tell it. Leave holdout out, and "
                "predict new samples after training."
            )
        assert isinstance(method, SealedTours)  # the method with this mode
        # refuses what is for one process only
        method.in_federation(list(federation.parties).index(labels.held_by))

    def check_plateau(self, federation: Federation, instead: str) -> None:
        """The key holder knows the objective after each tour."""
        if federation.privacy is not None and federation.privacy.dp is not None:
            raise ConfigError(
                "stop.plateau: when the objective stops falling depends on the data, which the "
                f"budget of privacy.dp does not count. {instead}"
            )


SEALED_PRIVACY = SealedPrivacy()
