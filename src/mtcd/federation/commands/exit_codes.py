"""The exit codes of the commands of a federation, as --help and docs/federation.md state them.

The operator's commands share one scale: 0 all parties, 3 some, 1 none.
"""

from __future__ import annotations

from collections.abc import Collection

SUCCESS = 0
NONE = 1
INVALID = 2
SOME = 3
INTERRUPTED = 130
INPUT = "the input is invalid: the reason is on standard error"
CTRL_C = "interrupted with Ctrl-C"

_ADMINISTRATION = {SUCCESS: "done", INVALID: f"{INPUT}, and nothing was changed"}
_TAKING_PART = {
    SUCCESS: "the run has ended, and this party has kept its block",
    NONE: "the training diverged: there is no block",
    INVALID: "an error, or stopped before training began: the reason is on standard error",
    INTERRUPTED: f"{CTRL_C}, or terminated: restart this party to continue",
}
EXIT_CODES: dict[str, dict[int, str]] = {
    **dict.fromkeys(
        ("federation init", "federation renew", "federation revoke", "federation move"),
        _ADMINISTRATION,
    ),
    **dict.fromkeys(("federation backup", "federation restore"), _ADMINISTRATION),
    "federation list": {SUCCESS: "listed, whatever the state of the certificates", INVALID: INPUT},
    "federation status": {
        SUCCESS: "every party answers, or has ended",
        NONE: "no party answers, and the end of some is not known",
        INVALID: INPUT,
        SOME: "some party is not reached or not readable, has failed, or was interrupted",
    },
    "federation stop": {
        SUCCESS: "every party is stopping, or had finished already",
        NONE: "no party was reached",
        INVALID: INPUT,
        SOME: "some party was not reached, or refuses",
    },
    "federation logs": {
        SUCCESS: "every party answers",
        NONE: "no party answers",
        INVALID: INPUT,
        SOME: "some party does not answer",
    },
    "federation dashboard": {SUCCESS: "closed with Ctrl-C", INVALID: INPUT},
    "federation demo": {
        SUCCESS: "trained",
        INVALID: "the input is invalid, or a party failed: the reason is on standard error",
        INTERRUPTED: CTRL_C,
    },
    "party": _TAKING_PART,
    "server": _TAKING_PART,
}


def described(command: str) -> str:
    """The exit codes of a command in one line, for its help."""
    codes = "; ".join(f"{code} {text}" for code, text in EXIT_CODES[command].items())
    return f"Exit codes: {codes}."


def by_reach(reached: Collection[str], everybody: Collection[str]) -> int:
    """The exit code of a request to all parties.

    >>> by_reach(["a"], ["a", "b"]), by_reach([], ["a"]), by_reach(["a"], ["a"])
    (3, 1, 0)
    """
    if not reached:
        return NONE
    return SUCCESS if set(everybody) <= set(reached) else SOME
