"""Time zones as dates name them: Z, UTC, +02:00, GMT+0200, CET, EDT."""

from __future__ import annotations

import re

_HOURS = {
    **dict.fromkeys(("z", "utc", "ut", "gmt", "wet"), 0),
    **dict.fromkeys(("cet", "mez", "west"), 1),
    **dict.fromkeys(("cest", "mesz", "eet"), 2),
    **dict.fromkeys(("eest", "msk"), 3),
    "jst": 9,
    # of mails (RFC 5322)
    **{"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8},
}
_NUMBER = re.compile(r"(?:utc|gmt)?(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})?")


def offset_of(zone: str) -> int | None:
    """The minutes that a time zone is before UTC; None of a name that is not known.

    >>> offset_of("+02:00"), offset_of("EST"), offset_of("Uhr")
    (120, -300, None)
    """
    zone = zone.lower()
    if zone in _HOURS:
        return 60 * _HOURS[zone]
    found = _NUMBER.fullmatch(zone)
    if found is None:
        return None
    hours = int(found["hours"])
    minutes = int(found["minutes"] or 0)
    if hours > 23 or minutes > 59:
        return None
    sign = -1 if found["sign"] == "-" else 1
    return sign * (60 * hours + minutes)
