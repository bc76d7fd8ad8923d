"""Docstrings against signatures: names, order and defaults."""

import inspect
import re

import numpy as np
import pytest

from corral import all_methods

ESTIMATORS = {name: method.estimator for name, method in all_methods().items()}


def documented(docstring):
    """Return the parameters of a numpydoc docstring and what is said of each."""
    section = re.search(
        r"Parameters\n\s*-+\n(.*?)(\n\s*\n\s*\w[\w ]*\n\s*-{3,}|\Z)",
        inspect.cleandoc(docstring),
        re.S,
    )
    found = re.findall(r"^([*\w]+) : ((?:[^\n\\]|\\\n\s+)+)$", section.group(1), re.M)
    return {name.lstrip("*"): text for name, text in found}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_parameters_are_those_of_the_signature(estimator):
    described = documented(estimator.__doc__)
    signature = inspect.signature(estimator)
    assert list(described) == list(signature.parameters)
    for name, parameter in signature.parameters.items():
        text = described[name].replace("\\\n", " ")
        default = re.search(r"default=(\S+)$", text).group(1).strip('"')
        assert default == str(parameter.default) or float(default) == parameter.default


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_methods_describe_their_parameters(estimator):
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        if name.startswith("_") or not method.__module__.startswith("corral"):
            continue
        parameters = [p for p in inspect.signature(method).parameters if p != "self"]
        assert list(documented(method.__doc__)) == parameters, name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted_attributes_are_described(name, planted):
    wanted = {"n_clusters": 3, "n_partitions": 5, "random_state": 0}
    method = all_methods()[name]
    wanted = {k: v for k, v in wanted.items() if k in method.parameters}
    model = method.make(**wanted).fit(np.abs(planted.X))
    fitted = {each for each in vars(model) if each.endswith("_")}
    docstring = inspect.getdoc(method.estimator)
    section = docstring[docstring.index("Attributes") :]
    names = re.findall(r"^((?:\w+_, )*\w+_) : ", section, re.M)
    described = {each for line in names for each in line.split(", ")}
    assert fitted <= described
    assert described - fitted <= {"feature_names_in_"}
