"""Errors of the library, and what they carry."""

from mtcd.core.errors import DataError


def test_what_other_parties_may_read_goes_with_an_error() -> None:
    """Instead of the text, which may hold values of a table."""
    error = DataError("row 3 is 17.5", shared="a row of p1")
    assert (str(error), error.shared) == ("row 3 is 17.5", "a row of p1")
    assert DataError("row 3").shared is None
