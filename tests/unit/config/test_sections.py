"""Sections of a config that features bring: which class a config gets, and what is imported for
it."""

import subprocess
import sys

import pytest

from mtcd.config.read import check_config
from mtcd.config.schema import Config, DataSection, ModelSection
from mtcd.core import features
from mtcd.core.errors import ConfigError

MADE = {"synthetic": "ridge", "samples": 20, "features": 6, "clients": 3}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "GlmSection"),
        ({"kind": "logistic"}, "GlmSection"),
        ({"kind": "trees"}, "TreesSection"),
        ({"kind": "mixed", "parties": {"a": "linear"}}, "MixedSection"),
        ({"parties": {"a": "linear"}}, "MixedSection"),
        ({"kind": "split", "client": "mlp"}, "SplitSection"),
    ],
)
def test_a_kind_or_a_key_of_its_own_chooses_the_section_of_a_model(given, name) -> None:
    assert type(ModelSection.model_validate(given)).__name__ == name


def test_a_misspelt_kind_is_told_by_the_key_that_only_one_section_has() -> None:
    with pytest.raises(ConfigError, match=r"model\.kind: should be 'split' \(got 'spilt'\)"):
        check_config({"data": MADE, "model": {"kind": "spilt", "client": "mlp"}})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (MADE, "SyntheticData"),
        ({"dataset": "gisette", "clients": 2}, "DatasetData"),
        ({"table": "a.svm", "clients": 2}, "SparseData"),
        ({"table": "a.csv", "label": "y", "clients": 2}, "TableData"),
    ],
)
def test_a_key_of_its_own_or_the_file_chooses_the_section_of_data(given, name) -> None:
    assert type(DataSection.model_validate(given)).__name__ == name


def test_unknown_keys_are_compared_with_those_of_the_section_that_was_chosen() -> None:
    content = {
        "data": {"dataset": "beijing-air", "clients": 2, "forecast": {"hour": 3}},
        "model": {"kind": "trees", "lerning_rate": 1},
    }
    with pytest.raises(ConfigError) as refused:
        check_config(content)
    assert "'data.forecast.hour', did you mean 'hours'?" in str(refused.value)
    assert "'model.lerning_rate', did you mean 'learning_rate'?" in str(refused.value)


def test_without_the_data_sets_a_config_that_names_one_is_refused_as_a_table(monkeypatch) -> None:
    """And their key is not offered."""
    monkeypatch.setattr(features, "of_other_packages", lambda: ())
    with pytest.raises(ConfigError) as refused:
        check_config({"data": {"dataset": "gisette", "clients": 2}})
    assert "unknown key 'data.dataset'" in str(refused.value)
    assert DataSection.signs() == ["synthetic"]


def test_without_any_kind_of_model_a_config_says_so(monkeypatch) -> None:
    monkeypatch.setattr(features, "config_sections", lambda key: {})
    with pytest.raises(ConfigError, match="this installation of mtcd has no kind of model"):
        check_config({"data": MADE, "model": {"kind": "ridge"}})


def test_a_section_keeps_its_class_and_its_keys_in_a_file_and_back() -> None:
    config = check_config({"data": MADE, "model": {"kind": "trees", "depth": 3}})
    again = check_config(config.model_dump(mode="json", exclude_none=True))
    assert again == config
    assert type(again.model).__name__ == "TreesSection"
    assert config.model_dump(exclude_defaults=True)["model"] == {"kind": "trees", "depth": 3}
    plain = check_config({"data": MADE, "model": {"kind": "ridge"}})
    assert "model" not in plain.model_dump(exclude_defaults=True)


def test_a_config_of_a_linear_model_imports_no_other_kind() -> None:
    script = (
        "import sys\n"
        "from mtcd.config.build import build\n"
        "from mtcd.config.read import check_config\n"
        f"build(check_config({{'data': {MADE!r}}}))\n"
        "others = ('mtcd.models.trees.', 'mtcd.models.splitnet.', 'torch', 'lightgbm',\n"
        "    'mtcd_experiments.datasets')\n"
        "print(sorted(m for m in sys.modules\n"
        "    if m.startswith(others)\n"
        "    and not sys.modules[m].__file__.endswith(('feature.py', '__init__.py'))))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


def test_the_schema_names_no_kind_of_model() -> None:
    assert Config.model_fields["model"].annotation is ModelSection
    assert Config.model_fields["data"].annotation is DataSection
