"""Saving and loading of models."""

import io
import json
import re
import warnings
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

import corral
from corral._atomic import write_atomically
from corral.persist._archive import (
    PAGE,
    SCHEMA,
    ArchiveError,
    measure_arrays,
    pack,
    read_file,
    read_json,
    read_page,
    store,
    unpack,
)
from corral.persist._forms import MODELS
from corral.persist._kinds import Sizes, check_object, name_class
from corral.persist._packing import pack_model
from corral.persist._schema import (
    StrangerError,
    clean_schema,
    number_arrays,
    trusted_types,
)
from corral.tables._broken import first_line

# Raised when files of older releases can no longer be read, or newer ones not by older.
_FORMAT = 1

_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")


def save(model: BaseEstimator, path: str | Path, *, replace: bool = True) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : estimator
        COR, CORDetector, TableModel or any method of :func:`corral.all_methods`.
    path : str or Path
        By custom it ends in ``.skops``. What was there is replaced at the end only.
    replace : bool, default=True
        Whether a file that is there is replaced. Else the model gets another name, and
        an error tells it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import corral
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = corral.COR(n_clusters=2, random_state=0).fit(X)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.skops")
    >>> model.save(path)
    >>> bool((corral.load(path).predict(X) == model.predict(X)).all())
    True
    """
    sio = _need_skops()
    name = type(model).__name__
    if name_class(type(model)) not in MODELS:
        raise TypeError(f"A model should be an estimator of corral. Got {name}.")
    try:
        content = _write(sio, model)
        # What could not be read is not written.
        _make(sio, unpack(content))
    except StrangerError as error:
        raise ValueError(
            f"{name} cannot be saved, because it holds {error}, which would not be "
            "read again. Use parts that are on the list in docs/howto/models.md, and "
            "whole numbers for random_state."
        ) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} cannot be saved: {first_line(error)}.") from error
    except RecursionError as error:
        raise ValueError(
            f"{name} cannot be saved, because it holds itself, or what is nested too "
            "deeply. Use plain numbers, texts and lists of them as parameters."
        ) from error
    with write_atomically(path, replace=replace) as part:
        part.write_bytes(content)


def load(path: str | Path) -> Any:
    """Read a model that :func:`save` wrote.

    No code of the file is run, only classes on a fixed list are made, and a model whose
    arrays do not fit each other is refused. So a file from anywhere can be tried; it
    may still hold a model that answers wrongly.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    model : estimator
        Its answers are those of the model that was saved, to the last bit. A warning
        tells if another release of corral wrote it, because answers may then differ.
    """
    sio = _need_skops()
    try:
        content = read_file(Path(path))
        # First, as other formats may have other members, and be no archive of ours.
        page = _read_page(content)
        _check_format(path, page)
        members = unpack(content)
    except ArchiveError as error:
        raise ValueError(
            f"'{path}' is not a model that corral wrote, or it is damaged: "
            f"{first_line(error)}."
        ) from error
    try:
        model = _make(sio, members)
    except StrangerError as error:
        raise ValueError(
            f"'{path}' is not read, because it holds {error}. Only classes that models "
            "of corral are made of are read."
        ) from error
    except Exception as error:
        raise _broken(path, page, error) from error
    _warn_of_version(path, page)
    return model


def _need_skops() -> Any:
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            "Saving and loading models needs skops. Install it with: "
            'pip install "corral[persist]"'
        ) from error


def _write(sio: Any, model: BaseEstimator) -> bytes:
    """Return the content of a model's file."""
    buffer = io.BytesIO()
    sio.dump(pack_model(model), buffer)
    with zipfile.ZipFile(buffer) as archive:
        arrays = {name: archive.read(name) for name in archive.namelist()}
    schema, arrays = number_arrays(json.loads(arrays.pop(SCHEMA)), arrays)
    page = json.dumps(_describe(), indent=2).encode()
    return pack({PAGE: page, SCHEMA: json.dumps(schema).encode(), **arrays})


def _describe() -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "corral": corral.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _read_page(content: bytes) -> dict[str, Any]:
    """Return what a file says about itself: its format, and the versions it is of."""
    if not content:
        raise ArchiveError("it is empty")
    if content[:1] == b"\x80":
        raise ArchiveError(
            "it looks like a pickle. Pickles are not read, because they can run any "
            "code. Save the model with its method save"
        )
    page = read_page(content)
    if not isinstance(page, dict) or not isinstance(page.get("corral"), str):
        raise ArchiveError("it does not say which version wrote it")
    if type(page.get("format")) is not int or not 0 <= page["format"] < 2**31:
        raise ArchiveError("it does not say which format it has")
    # Of another format, only the version that wrote it is known to be there.
    names = page if page["format"] == _FORMAT else ["corral"]
    for name in names:
        version = page[name]
        is_version = isinstance(version, str) and _VERSION.fullmatch(version)
        if name != "format" and not is_version:
            raise ArchiveError(f"{PAGE} has a version that is none")
    return page


def _check_format(path: str | Path, page: dict[str, Any]) -> None:
    if page["format"] == _FORMAT:
        return
    need = "It needs a newer corral: use" if page["format"] > _FORMAT else "Use"
    raise ValueError(
        f"'{path}' was written by corral {page['corral']} in the format "
        f"{page['format']}, and corral {corral.__version__} reads the format "
        f"{_FORMAT}. {need} that version, or fit the model again."
    )


def _make(sio: Any, members: dict[str, bytes]) -> Any:
    """Make a model from the members of an archive, and check it."""
    arrays = {name: members[name] for name in members.keys() - {SCHEMA, PAGE}}
    schema = clean_schema(read_json(SCHEMA, members[SCHEMA]), measure_arrays(arrays))
    known = {**arrays, SCHEMA: json.dumps(schema).encode()}
    model = sio.loads(store(known), trusted=trusted_types())
    if name_class(type(model)) not in MODELS:
        raise ValueError(f"it holds a {type(model).__name__} and no model")
    check_object(model, type(model).__name__, Sizes())
    return model


def _broken(path: str | Path, page: dict[str, Any], error: Exception) -> ValueError:
    return ValueError(
        f"'{path}' cannot be read: {first_line(error)}. It was written by corral "
        f"{page['corral']} with scikit-learn {page.get('scikit-learn')}; here are "
        f"corral {corral.__version__} and scikit-learn {sklearn.__version__}. Use "
        "those versions, or fit the model again."
    )


def _warn_of_version(path: str | Path, page: dict[str, Any]) -> None:
    """Warn if the release differs; repairs within a release keep what models hold."""
    wrote = page["corral"]
    if wrote.split(".")[:2] != corral.__version__.split(".")[:2]:
        warnings.warn(
            f"'{path}' was written by corral {wrote}, and this is "
            f"{corral.__version__}. Answers may differ: fit again to be sure.",
            UserWarning,
            stacklevel=3,
        )
