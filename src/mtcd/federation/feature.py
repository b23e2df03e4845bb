"""Federations: parties of different owners, each a process of its own."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.cli.predict": {"party.yaml": "mtcd.federation.commands.party:predict_with_others"}
    },
    commands={
        "": "mtcd.federation.commands.party_commands:parties",
        "federation": "mtcd.federation.commands.administration:federation",
    },
)
