"""``python -m documentation.patients``: tables of made-up people, for pages that need some that
they do not show."""

from __future__ import annotations

import csv
import random
from pathlib import Path

COLUMNS = ("patient", "age", "sex", "city", "admitted", "marker", "glucose", "outcome")


def write(path: Path, first: int, last: int) -> None:
    """People with these numbers; a few values are missing."""
    rows = [_person(number) for number in range(first, last)]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


def _person(number: int) -> list[object]:
    draw = random.Random(number)
    age, marker, glucose = draw.gauss(55, 15), draw.gauss(0, 1), draw.gauss(0, 1)
    sex, city = draw.choice(["female", "male"]), f"city {draw.randrange(4)}"
    ill = (age - 55) / 15 + marker + (sex == "male") + draw.gauss(0, 1) > 0.5
    known = "" if draw.random() < 0.05 else round(age, 1)
    day = f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    return [
        f"p{number}",
        known,
        sex,
        city,
        day,
        round(marker, 3),
        round(glucose, 3),
        "ill" if ill else "well",
    ]


if __name__ == "__main__":
    write(Path("patients.csv"), 0, 300)
    write(Path("new.csv"), 300, 340)
