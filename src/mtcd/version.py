"""The version of the library, in one place."""

VERSION = "0.1.0"
