"""Units of measurement, currencies and magnitudes that everyday tables write beside a number."""

from __future__ import annotations

from functools import cache

_DIMENSIONS: dict[str, dict[str, str]] = {
    # dimension: {unit: other spellings of it}
    "mass": {
        "kg": "kgs kilo kilos kilogram kilograms",
        "g": "gr gram grams",
        "mg": "milligram milligrams",
        "µg": "μg ug mcg microgram micrograms",
        "ng": "",
        "t": "ton tons tonne tonnes",
        "lb": "lbs pound pounds",
        "oz": "ounce ounces",
        "st": "stone",
    },
    "length": {
        "km": "kilometer kilometers kilometre kilometres",
        "m": "meter meters metre metres",
        "cm": "centimeter centimeters centimetre centimetres",
        "mm": "millimeter millimeters millimetre millimetres",
        "µm": "μm um",
        "nm": "",
        "mi": "mile miles",
        "ft": "foot feet",
        "in": "inch inches",
        "yd": "yard yards",
    },
    "area": {
        "m²": "m2 m^2 sqm qm",
        "km²": "km2 km^2",
        "cm²": "cm2 cm^2",
        "ft²": "ft2 ft^2 sqft sq.ft.",
        "ha": "hectare hectares",
        "acre": "acres ac",
    },
    "volume": {
        "l": "L liter liters litre litres",
        "ml": "mL milliliter milliliters millilitre millilitres",
        "cl": "cL",
        "dl": "dL",
        "µl": "μl ul µL μL uL",
        "fl": "fL",
        "gal": "gallon gallons",
        "m³": "m3 m^3 cbm",
        "cm³": "cm3 cm^3 ccm",
    },
    "time": {
        "s": "sec secs second seconds",
        "ms": "millisecond milliseconds",
        "min": "mins minute minutes",
        "h": "hr hrs hour hours",
        "d": "day days",
        "week": "weeks wk wks",
        "month": "months mo mos",
        "year": "years yr yrs y",
    },
    "temperature": {"°C": "℃ C degC celsius", "°F": "℉ F degF fahrenheit"},
    "energy": {"J": "", "kJ": "", "MJ": "", "cal": "", "kcal": "", "Wh": "", "kWh": "", "MWh": ""},
    "power": {"mW": "", "W": "watt watts", "kW": "", "MW": "", "hp": "PS bhp"},
    "voltage": {"mV": "", "V": "volt volts", "kV": ""},
    "current": {"mA": "", "A": "ampere amperes amp amps"},
    "frequency": {"Hz": "", "kHz": "", "MHz": "", "GHz": "", "bpm": "", "rpm": ""},
    "pressure": {
        "Pa": "",
        "hPa": "",
        "kPa": "",
        "bar": "",
        "mbar": "",
        "psi": "",
        "mmHg": "",
        "atm": "",
    },
    "speed": {"km/h": "kmh kph", "mph": "mi/h", "m/s": "", "kn": "knot knots"},
    "concentration": {
        "mg/dl": "mg/dL",
        "g/dl": "g/dL",
        "mg/l": "mg/L",
        "g/l": "g/L",
        "µg/l": "μg/l ug/l µg/L μg/L ug/L",
        "ng/ml": "ng/mL",
        "mmol/l": "mmol/L",
        "µmol/l": "μmol/l umol/l µmol/L μmol/L umol/L",
        "U/l": "U/L IU/L IU/l",
    },
    "data": {"B": "", "kB": "KB", "MB": "", "GB": "", "TB": "", "KiB": "", "MiB": "", "GiB": ""},
    "share": {"%": "percent pct per\u00a0cent", "‰": "", "ppm": "", "ppb": "", "bp": "bps"},
    "magnitude": {
        "k": "K tsd Tsd. thousand",
        "M": "Mio Mio. mio million",
        "bn": "Bn Mrd Mrd. billion",
    },
    "currency": {
        "$": "",
        "US$": "USD",
        "€": "EUR Euro euro euros",
        "£": "GBP",
        "¥": "",
        "JPY": "",
        "CNY": "RMB",
        "CHF": "Fr. SFr.",
        "CAD": "C$ CA$",
        "AUD": "A$ AU$",
        "NZD": "NZ$",
        "HKD": "HK$",
        "SGD": "S$",
        "BRL": "R$",
        "MXN": "",
        "INR": "₹ Rs Rs.",
        "SEK": "",
        "NOK": "",
        "DKK": "",
        "kr": "kr.",
        "PLN": "zł",
        "CZK": "Kč",
        "HUF": "Ft",
        "RON": "",
        "TRY": "₺",
        "RUB": "₽",
        "UAH": "₴",
        "ILS": "₪",
        "KRW": "₩",
        "VND": "₫",
        "THB": "฿",
        "PHP": "₱",
        "NGN": "₦",
        "IDR": "Rp",
        "MYR": "",
        "ZAR": "",
        "SAR": "",
        "AED": "",
        "TWD": "",
        "ct": "¢ cents cent",
    },
}

SCALES_WITH_AN_OFFSET = "temperature"
"""The dimension in which 0 of one unit is not 0 of another."""
CURRENCY = "currency"
WITH_POINTS = frozenset(
    {"$", "US$", "£", "¥", "JPY", "CNY", "CAD", "AUD", "NZD", "HKD", "SGD", "MXN"}
    | {"INR", "ILS", "KRW", "THB", "PHP", "NGN", "MYR", "TWD"}
)
"""Currencies whose amounts are written with a decimal point: $1,234 is more than a thousand
dollars."""


@cache
def _spellings() -> tuple[dict[str, str], dict[str, str]]:
    """Every spelling of a unit, and the same in lower case for those that only one unit has."""
    exact: dict[str, str] = {}
    folded: dict[str, set[str]] = {}
    for units in _DIMENSIONS.values():
        for unit, others in units.items():
            for spelling in (
                unit,
                *(word.replace("\u00a0", " ") for word in others.split(" ") if word),
            ):
                exact[spelling] = unit
                folded.setdefault(spelling.casefold(), set()).add(unit)
    alone = {
        spelling: min(units)
        for spelling, units in folded.items()
        if len(units) == 1 and len(spelling) > 1
    }
    return exact, alone


@cache
def _dimension_of() -> dict[str, str]:
    return {unit: dimension for dimension, units in _DIMENSIONS.items() for unit in units}


def canonical(word: str) -> str | None:
    """The unit that a word stands for; None where it is no unit that we know.

    >>> canonical("KG"), canonical("pounds"), canonical("EUR"), canonical("Main")
    ('kg', 'lb', '€', None)
    """
    exact, folded = _spellings()
    word = word.strip()
    return exact.get(word) or folded.get(word.casefold())


def dimension(unit: str) -> str | None:
    """What a unit measures; None of a word that is no unit that we know.

    >>> dimension("kg"), dimension("$"), dimension("main")
    ('mass', 'currency', None)
    """
    return _dimension_of().get(unit)
