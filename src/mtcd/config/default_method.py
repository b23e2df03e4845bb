"""The section ``method`` of a method, and the one that is taken where a config has none."""

from __future__ import annotations

from mtcd.config.keys import has_depth, keys_of
from mtcd.config.method_schema import MethodSection, section_for
from mtcd.config.section import Section
from mtcd.methods.default import default_method
from mtcd.methods.method import Method
from mtcd.privacy.settings import Privacy
from mtcd.training.kinds import kind_of


def method_section(method: Method) -> MethodSection:
    """The section of a config that makes this method."""
    settings = {}
    for name in keys_of(method.kind):
        if hasattr(method, name):
            settings[name] = getattr(method, name)

    if method.acceleration is not None and method.chooses_steps:
        # in a method it is a number by now, which belongs to this data
        settings |= {"stepsize": "auto"}
    if not has_depth(settings.get("acceleration")):  # a note would say that it has no effect
        settings.pop("depth", None)
    return section_for(method.kind).model_validate({"kind": method.kind, **settings})


def default_section(
    model: Section,
    privacy: Privacy | None = None,
    connected: bool = True,
    server: bool | None = None,
) -> MethodSection:
    """The section of the default method for the section of a model: see ``default_method``.

    The section alone decides, as a model cannot be made before the code of a loss of one's own is
    found.
    """
    return method_section(default_method(kind_of(model), model, connected, privacy, server))
