"""Files of every released version are read, and answer as they did."""

import json
import zipfile

import numpy as np
import pytest

import corral
from corral.persist._forms import FORMS, MODELS
from tests.models.make import HERE, answer

VERSIONS = sorted(each.name for each in HERE.iterdir() if each.name[0].isdigit())


def find_classes(path):
    """Return the classes that a file names, beside containers and values."""
    with zipfile.ZipFile(path) as archive:
        rest = [json.loads(archive.read("schema.json"))]
    found = set()
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            if node.get("__loader__") in ("ObjectNode", "TupleNode"):
                found.add(f"{node['__module__']}.{node['__class__']}")
            rest += node.values()
        elif isinstance(node, list):
            rest += node
    return found - {"builtins.tuple"}


def list_files(version):
    return sorted((HERE / version).glob("*.skops"))


@pytest.mark.filterwarnings("ignore:.*was written by corral")
@pytest.mark.parametrize("version", VERSIONS)
def test_models_of_each_version_answer_as_they_did(version):
    expected = json.loads((HERE / version / "answers.json").read_text())
    files = list_files(version)
    assert {each.stem for each in files} == expected["answers"].keys()
    for file in files:
        found = answer(file.stem, corral.load(file), expected["rows"])
        assert found.keys() == expected["answers"][file.stem].keys()
        for method, values in expected["answers"][file.stem].items():
            np.testing.assert_allclose(
                found[method], values, rtol=1e-9, atol=1e-12, err_msg=file.stem
            )


def test_this_version_has_its_models():
    # Made by tests/models/make.py before a release.
    assert corral.__version__ in VERSIONS


def test_the_list_of_classes_is_what_models_are_made_of():
    found = [find_classes(file) for file in list_files(corral.__version__)]
    assert set().union(*found) == set(FORMS)


def test_every_estimator_is_a_model():
    found = {
        f"{each.estimator.__module__}.{each.estimator.__qualname__}"
        for each in corral.all_methods().values()
    }
    assert found | {"corral.tables._model.TableModel"} == MODELS
    for method in corral.all_methods().values():
        assert callable(method.estimator.save)
