"""Models in files: written complete or not at all, read without running code of theirs.

The file is skops' format, a zip archive of arrays and a description, plus a page that
names the versions that wrote it. Unlike a pickle it cannot bring code along.
"""

import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neighbors import BallTree, KDTree
from sklearn.tree import BaseDecisionTree

import corral
from corral._atomic import write_atomically

__all__ = ["load", "save"]

# The page about versions, beside skops' own files in the archive.
_PAGE = "corral.json"

# Raised when files of older releases can no longer be read.
_FORMAT = 1

# What skops does not trust by itself and fitted models hold. Trees and sparse rows are
# checked after they are read: their numbers are followed without a look at their range.
_TRUSTED = {
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csc.csc_array",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.tree._tree.Tree",
}

# Distances that such trees measure, each a class of its own.
_DISTANCES = ("sklearn.metrics._dist_metrics.", "Distance64")

# The parts of corral whose classes may be in a file, beside its private modules. None
# of these classes does anything but hold what it is given.
_PARTS = {"detectors", "rivals", "tables"}


def save(model: BaseEstimator, path: str | Path) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : estimator
        COR, CORDetector, TableModel or any method of :func:`corral.all_methods`.
    path : str or Path
        By custom it ends in ``.skops``. What was there is replaced at the end only.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from corral import COR, persist
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = COR(n_clusters=2, random_state=0).fit(X)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.skops")
    >>> persist.save(model, path)
    >>> bool((persist.load(path).predict(X) == model.predict(X)).all())
    True
    """
    sio = _need_skops()
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"A model should be an estimator. Got {type(model).__name__}.")
    buffer = io.BytesIO()
    try:
        sio.dump(_without_maps(model, {}), buffer, compression=zipfile.ZIP_DEFLATED)
    except TypeError as error:
        raise ValueError(
            f"{type(model).__name__} cannot be saved: {_first_line(error)}."
        ) from error
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_PAGE, json.dumps(_describe(), indent=2))
    strangers = _find_strangers(sio, buffer.getvalue())
    if strangers:
        raise ValueError(
            f"{type(model).__name__} cannot be saved, because it holds "
            f"{', '.join(strangers)}, which would not be trusted when it is read. Use "
            "parts of corral, scikit-learn, NumPy and SciPy only."
        )
    with write_atomically(path) as part:
        part.write_bytes(buffer.getbuffer())


def load(path: str | Path) -> Any:
    """Read a model that :func:`save` wrote.

    Only classes of corral, scikit-learn, NumPy and SciPy are made, and no code of the
    file is run. A file made to harm may still use up memory or time.

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
    content = _read_file(Path(path))
    page = _read_page(path, content)
    try:
        strangers = _find_strangers(sio, content)
    except Exception as error:
        raise _broken(path, page, error) from error
    if strangers:
        raise ValueError(
            f"'{path}' is not read, because it holds {', '.join(strangers)}. Only "
            "classes of corral, scikit-learn, NumPy and SciPy are trusted."
        )
    try:
        names = sio.get_untrusted_types(data=content)
        model = sio.loads(content, trusted=names)
        _check_trees(model)
    except Exception as error:
        raise _broken(path, page, error) from error
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"'{path}' holds a {type(model).__name__} and no model.")
    _warn_of_version(path, page)
    return model


def _without_maps(value: Any, seen: dict[int, Any]) -> Any:
    """Return a model in which memory maps are plain arrays, which are not copied."""
    if isinstance(value, np.memmap):
        # The same map stays the same array, which is then written once.
        return seen.setdefault(id(value), np.asarray(value))
    if not isinstance(value, BaseEstimator):
        return value
    parts = {name: _without_maps(part, seen) for name, part in vars(value).items()}
    if all(parts[name] is part for name, part in vars(value).items()):
        return value
    plain = copy(value)
    vars(plain).update(parts)
    return plain


def _need_skops() -> Any:
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            "Saving and loading models needs skops. Install it with: "
            'pip install "corral[persist]"'
        ) from error


def _describe() -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "corral": corral.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _find_strangers(sio: Any, content: bytes) -> list[str]:
    """Return the types in a file that are not trusted."""
    names = sio.get_untrusted_types(data=content)
    return [name for name in names if not (_is_known(name) or _is_ours(name))]


def _is_known(name: str) -> bool:
    start, end = _DISTANCES
    return name in _TRUSTED or (name.startswith(start) and name.endswith(end))


def _is_ours(name: str) -> bool:
    """Return whether it is a class that corral itself defines and models may hold.

    A look at the beginning of the name is not enough: modules hold what they import.
    """
    module, _, class_name = name.rpartition(".")
    package, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    if package != "corral" or not (part.startswith("_") or part in _PARTS):
        return False
    try:
        found = getattr(import_module(module), class_name, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module


def _read_file(path: Path) -> bytes:
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder. Name a model file.")
    if not path.exists():
        raise FileNotFoundError(f"'{path}' is not there.")
    return path.read_bytes()


def _read_page(path: str | Path, content: bytes) -> dict[str, Any]:
    """Return what the file says about itself, after a check of all its parts."""
    if not content:
        raise ValueError(f"'{path}' is empty.")
    if content[:1] == b"\x80":
        raise ValueError(
            f"'{path}' looks like a pickle. Pickles are not read, because they can run "
            "any code. Save the model with corral.persist.save."
        )
    foreign = f"'{path}' is not a model that corral wrote, or it is damaged"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            damaged = archive.testzip()
            names = archive.namelist()
            page = json.loads(archive.read(_PAGE)) if _PAGE in names else None
    except Exception as error:
        raise ValueError(f"{foreign}: {error}.") from error
    if damaged is not None:
        raise ValueError(f"'{path}' is damaged: the check sum of {damaged!r} is wrong.")
    if not isinstance(page, dict) or "corral" not in page:
        raise ValueError(f"{foreign}: it does not say which version wrote it.")
    if page.get("format") != _FORMAT:
        raise ValueError(
            f"'{path}' was written by corral {page['corral']} in the format "
            f"{page.get('format')}, and corral {corral.__version__} reads the format "
            f"{_FORMAT}. Use that version, or fit the model again."
        )
    return page


def _broken(path: str | Path, page: dict[str, Any], error: Exception) -> ValueError:
    return ValueError(
        f"'{path}' cannot be read: {_first_line(error)}. It was written by corral "
        f"{page['corral']} with scikit-learn {page.get('scikit-learn')}; here are "
        f"corral {corral.__version__} and scikit-learn {sklearn.__version__}. Use "
        "those versions, or fit the model again."
    )


def _warn_of_version(path: str | Path, page: dict[str, Any]) -> None:
    """Warn if the release differs; repairs within a release keep what models hold."""
    wrote = str(page["corral"])
    if wrote.split(".")[:2] != corral.__version__.split(".")[:2]:
        warnings.warn(
            f"'{path}' was written by corral {wrote}, and this is "
            f"{corral.__version__}. Answers may differ: fit again to be sure.",
            UserWarning,
            stacklevel=3,
        )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _check_trees(model: Any) -> None:
    """Refuse trees and sparse rows whose numbers lead out of them or in circles."""
    for each in _find_trees(model, set()):
        if sparse.issparse(each):
            each.check_format(full_check=True)
        elif isinstance(each, BaseDecisionTree):
            _check_decisions(each)
        else:
            _check_search(each)


def _check_decisions(estimator: BaseDecisionTree) -> None:
    tree = estimator.tree_
    nodes = np.arange(tree.node_count)
    is_inner = tree.children_left != -1
    for children in (tree.children_left, tree.children_right):
        # A child comes after its parent.
        is_good = (children > nodes) & (children < tree.node_count)
        if not np.array_equal(is_good, is_inner):
            raise ValueError("a tree has a node that is not there")
    split = tree.feature[is_inner]
    is_good = (split >= 0) & (split < tree.n_features)
    if not is_good.all() or tree.n_features != estimator.n_features_in_:
        raise ValueError("a tree splits by a feature that is not there")


def _check_search(tree: KDTree | BallTree) -> None:
    data, places, nodes, bounds = map(np.asarray, tree.get_arrays())
    n_nodes = len(nodes)
    is_inner = nodes["is_leaf"] == 0
    starts, ends = nodes["idx_start"], nodes["idx_end"]
    is_good = (
        np.array_equal(np.sort(places), np.arange(len(data)))
        and ((starts >= 0) & (starts <= ends) & (ends <= len(data))).all()
        # The children of node i are the nodes 2i + 1 and 2i + 2.
        and (2 * np.flatnonzero(is_inner) + 2 < n_nodes).all()
        and bounds.shape[1] == n_nodes
        and bounds.shape[2] == data.shape[1]
    )
    if not is_good:
        raise ValueError("a search tree has a node or a row that is not there")


def _find_trees(value: Any, seen: set[int]) -> Iterator[Any]:
    """Return all trees and sparse rows in a value, whose numbers are not checked."""
    if isinstance(value, (str, bytes, int, float)) or id(value) in seen:
        return
    seen.add(id(value))
    is_decision = isinstance(value, BaseDecisionTree) and hasattr(value, "tree_")
    is_rows = sparse.issparse(value) and value.format in ("csr", "csc", "bsr")
    if is_decision or is_rows or isinstance(value, (KDTree, BallTree)):
        yield value
    inside: Any = getattr(value, "__dict__", {})
    if isinstance(value, dict):
        inside = value
    if isinstance(value, (list, tuple, set)):
        inside = dict(enumerate(value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        inside = dict(enumerate(value.flat))
    for each in inside.values():
        yield from _find_trees(each, seen)
