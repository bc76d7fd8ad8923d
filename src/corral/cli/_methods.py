"""Methods by the names that users type, and estimators with their options."""

from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from corral.cli._errors import near_names

# Options whose name is not the parameter's.
_OPTION_NAMES = {"n_jobs": "--jobs", "random_state": "--seed"}

# The share that CORDetector sets aside by default.
_DETECTOR_SHARE = 0.05

# They do not change what is found where a method has no use for them.
_HARMLESS = {"n_jobs", "random_state"}


class MethodName(click.ParamType):
    """A method of ``corral.all_methods()``, by its name or the name of its class."""

    name = "name"

    def convert(self, value, param, ctx) -> str:
        """Return the name of the method, whatever its case."""
        names = _known_names()
        if value.lower() not in names:
            methods = list(dict.fromkeys(names.values()))
            hint = near_names(value, methods + _class_names())
            self.fail(f"There is no method {value!r}. {hint}", param, ctx)
        return names[value.lower()]

    def shell_complete(self, ctx, param, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so."""
        names = dict.fromkeys(_known_names().values())
        return [CompletionItem(each) for each in names if each.startswith(incomplete)]


def make_method(
    name: str, options: Mapping[str, Any], *, tfidf: bool = False, strict: bool = True
):
    """Return the estimator of a method.

    Parameters
    ----------
    name : str
        Of ``corral.all_methods()``.
    options : mapping of str to object
        Parameters; None where the user said nothing.
    tfidf : bool, default=False
        Whether rows are weighted words: then the distance is cosine, where the method
        has one and the user did not say another.
    strict : bool, default=True
        Whether an option that the method does not have is an error; otherwise it is
        for other methods.

    Returns
    -------
    estimator : object
        Not fitted.
    """
    from corral import all_methods

    methods = all_methods()
    # The detector's view of COR has the options of COR.
    method = methods["cor" if name == "cor-detector" else name]
    given = {key: value for key, value in options.items() if value is not None}
    if tfidf and "metric" in method.parameters:
        given.setdefault("metric", "cosine")
    if name == "cor-detector" and not {"n_outliers", "contamination"} & given.keys():
        # Who asks a detector wants outliers.
        given["contamination"] = _DETECTOR_SHARE
    unknown = [key for key in given if key not in method.parameters]
    if strict:
        _check_unknown(name, [key for key in unknown if key not in _HARMLESS])
    if method.name != "cor":
        asked = [key for key in given if given[key] == "auto"]
        if strict:
            _check_auto(name, asked)
        unknown += asked
    estimator = method.make(
        **{key: value for key, value in given.items() if key not in unknown}
    )
    return methods[name].make(estimator=estimator) if method.name != name else estimator


def _check_unknown(name: str, unknown: list[str]) -> None:
    if unknown:
        options = ", ".join(map(option_name, unknown))
        raise ValueError(f"{options} cannot be set for --method {name}. Leave it out.")


def _check_auto(name: str, asked: list[str]) -> None:
    if asked:
        raise ValueError(
            f"{option_name(asked[0])} auto cannot be set for --method {name}: only cor "
            "chooses. Give a number, or leave it out."
        )


def option_name(parameter: str) -> str:
    """Return the option that sets a parameter.

    Parameters
    ----------
    parameter : str

    Returns
    -------
    option : str
    """
    return _OPTION_NAMES.get(parameter, f"--{parameter.replace('_', '-')}")


def _known_names() -> dict[str, str]:
    """Return every accepted name in lower case, with the method's own name."""
    from corral._registry import _METHODS

    classes = {class_name.lower(): name for name, (*_, class_name) in _METHODS.items()}
    return classes | {name: name for name in _METHODS}


def _class_names() -> list[str]:
    from corral._registry import _METHODS

    return [class_name for *_, class_name in _METHODS.values()]
