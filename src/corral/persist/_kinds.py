"""Kinds of values: what an attribute of a fitted model may be, said in one line each.

A shape names its sizes: ``floats("k", "f")`` has as many columns as all else of the
object that has an "f". The first to come says how many that is, and the others have to
agree.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from corral._memory import read_limit

# The name of a size, or how large it is.
Size = str | int


class UnfitError(ValueError):
    """A value is not what it should be."""


class Sizes(dict[str, int]):
    """The sizes of an object by their names, as far as they are known."""

    def meet(self, name: Size, size: int, where: str) -> None:
        """Take a size over, or compare it with what is known."""
        expected = name if isinstance(name, int) else self.setdefault(name, size)
        if size != expected:
            raise UnfitError(f"{where} has the size {size} and should have {expected}")

    def read(self, size: Size) -> int:
        """Return a size as a number."""
        return self[size] if isinstance(size, str) else size


class Kind(ABC):
    """What a value may be."""

    @abstractmethod
    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Raise UnfitError if a value is not of this kind."""


@dataclass(frozen=True)
class Array(Kind):
    """An array of plain numbers, truth values or texts.

    Attributes
    ----------
    shape : tuple of sizes
    letters : str
        Of the dtypes it may have, as in ``numpy.dtype.kind``.
    low, high : bounds
        What is below ``low``, or is ``high`` or above, does not fit.
    is_finite : bool
        Whether no value is infinite or NaN.
    is_known : bool
        Whether no value is NaN.
    is_sorted : bool
        Whether no value is smaller than the one before it.
    total : size
        What the values add up to.
    dtype : str
        The only type that it may have, if it is not empty.
    is_plain : bool
        Whether it has to be in the order of C and of this machine, as compiled code of
        scikit-learn takes it.
    """

    shape: tuple[Size, ...]
    letters: str
    low: float = -math.inf
    high: Size | None = None
    is_finite: bool = True
    is_known: bool = True
    is_sorted: bool = False
    total: str | None = None
    dtype: str = ""
    is_plain: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check kind, shape and values."""
        if type(value) is not np.ndarray or value.dtype.kind not in self.letters:
            raise UnfitError(f"{where} is no array of the right kind")
        if value.dtype.kind == "f" and value.dtype.itemsize not in (4, 8):
            raise UnfitError(f"{where} has the unknown type {value.dtype}")
        if self.dtype and value.dtype != np.dtype(self.dtype):
            raise UnfitError(f"{where} has the type {value.dtype}, not {self.dtype}")
        if self.is_plain and not (value.flags.c_contiguous and value.dtype.isnative):
            raise UnfitError(f"{where} is in another order than C's")
        if value.ndim != len(self.shape):
            raise UnfitError(f"{where} has {value.ndim} dimensions")
        for name, size in zip(self.shape, value.shape, strict=True):
            sizes.meet(name, size, where)
        if value.dtype.kind in "iuf":
            self._check_numbers(value, where, sizes)

    def _check_numbers(self, value: np.ndarray, where: str, sizes: Sizes) -> None:
        if value.dtype.kind == "f":
            if self.is_finite and not np.isfinite(value).all():
                raise UnfitError(f"{where} has a value that is not finite")
            if self.is_known and np.isnan(value).any():
                raise UnfitError(f"{where} has a value that is no number")
        if value.size:
            low, high = value.min(), value.max()
            is_above = self.high is not None and high >= sizes.read(self.high)
            if low < self.low or is_above:
                raise UnfitError(f"{where} has values from {low} to {high}")
        if self.is_sorted and (value[1:] < value[:-1]).any():
            raise UnfitError(f"{where} is not sorted")
        if self.total is not None:
            sizes.meet(self.total, int(value.sum()), where)


def floats(*shape: Size, **settings: Any) -> Array:
    """Return the kind of arrays of floats."""
    return Array(shape, "f", **settings)


def integers(*shape: Size, **settings: Any) -> Array:
    """Return the kind of arrays of whole numbers."""
    return Array(shape, "iu", **settings)


def flags(*shape: Size) -> Array:
    """Return the kind of arrays of truth values."""
    return Array(shape, "b")


@dataclass(frozen=True)
class Rows(Kind):
    """Rows of finite floats, or of what the letters say, dense or sparse."""

    n_rows: str
    n_columns: Size
    letters: str = "f"
    dtype: str = ""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the shape, and that no index of sparse rows leads out of it."""
        if type(value) is not sparse.csr_array:
            shape = (self.n_rows, self.n_columns)
            Array(shape, self.letters, dtype=self.dtype).check(value, where, sizes)
            return
        for name, size in zip((self.n_rows, self.n_columns), value.shape, strict=True):
            sizes.meet(name, size, where)
        kept = Array(("stored",), self.letters, dtype=self.dtype, is_plain=True)
        kept.check(value.data, where, Sizes())
        # SciPy does not look at the others where the last one says that all are empty.
        ends = value.indptr
        is_one_type = ends.dtype == value.indices.dtype and ends.dtype.kind == "i"
        is_one_type &= ends.dtype.isnative
        if not is_one_type or (ends[1:] < ends[:-1]).any():
            raise UnfitError(f"{where} has rows that end before they begin")
        value.check_format(full_check=True)


@dataclass(frozen=True)
class Number(Kind):
    """A number of Python."""

    low: float = -math.inf
    high: float = math.inf
    is_finite: bool = True
    is_whole: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the kind and the range."""
        if type(value) not in ((int,) if self.is_whole else (int, float)):
            raise UnfitError(f"{where} is a {type(value).__name__} and no number")
        _check_size(value, where)
        if value != value or (self.is_finite and not math.isfinite(value)):
            raise UnfitError(f"{where}={value} is not finite")
        if not self.low <= value <= self.high:
            raise UnfitError(f"{where}={value} is out of range")


# Whole numbers of Python have no end, but no float is beyond this.
_LARGEST_WHOLE = 2**1000


def _check_size(value: int | float, where: str) -> None:
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise UnfitError(f"{where} is a number of {value.bit_length()} bits")


@dataclass(frozen=True)
class Threads(Kind):
    """How many threads, or None; -1 is all cores."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the number: more than any machine has are a way to stop it."""
        if value is None:
            return
        Number(-1024, 1024, is_whole=True).check(value, where, sizes)
        if value == 0:
            raise UnfitError(f"{where}=0 is no number of threads")


@dataclass(frozen=True)
class Count(Kind):
    """A whole number from ``low`` on, which may be a size."""

    size: str | None = None
    low: int = 0

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the number, and compare it with the size."""
        Number(self.low, 2**53, is_whole=True).check(value, where, sizes)
        if self.size is not None:
            sizes.meet(self.size, value, where)


@dataclass(frozen=True)
class Flag(Kind):
    """True or False."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the kind."""
        if type(value) is not bool:
            raise UnfitError(f"{where} is neither True nor False")


@dataclass(frozen=True)
class Text(Kind):
    """A text, one of some if there are options."""

    options: frozenset[str] = frozenset()

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the kind and the options."""
        if type(value) is not str:
            raise UnfitError(f"{where} is no text")
        if self.options and value not in self.options:
            raise UnfitError(f"{where}={value[:40]!r} is not known")


def text(*options: str) -> Text:
    """Return the kind of texts that are one of these."""
    return Text(frozenset(options))


@dataclass(frozen=True)
class OrNone(Kind):
    """What another kind allows, or None."""

    kind: Kind

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check what is not None."""
        if value is not None:
            self.kind.check(value, where, sizes)


@dataclass(frozen=True)
class Maybe(Kind):
    """What another kind allows, in an attribute that need not be there."""

    kind: Kind

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check what is there."""
        self.kind.check(value, where, sizes)


@dataclass(frozen=True)
class Series(Kind):
    """A list or a tuple of values of one kind."""

    kind: Kind
    size: Size | None = None
    form: type = list
    has_own_sizes: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check each value; with sizes of its own, each is a world of its own."""
        if type(value) is not self.form or not isinstance(value, (list, tuple)):
            raise UnfitError(f"{where} is no {self.form.__name__}")
        if self.size is not None:
            sizes.meet(self.size, len(value), where)
        for place, each in enumerate(value):
            scope = Sizes() if self.has_own_sizes else sizes
            self.kind.check(each, f"{where}[{place}]", scope)


@dataclass(frozen=True)
class Mapping(Kind):
    """A dict from texts to values of one kind."""

    kind: Kind

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check each value; the keys are texts, as the archive has no others."""
        if type(value) is not dict:
            raise UnfitError(f"{where} is no dict")
        for each in value.values():
            self.kind.check(each, where, sizes)


@dataclass(frozen=True)
class Record(Kind):
    """A dict with given keys."""

    fields: dict[str, Kind]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the keys and their values."""
        if type(value) is not dict or value.keys() != self.fields.keys():
            raise UnfitError(f"{where} is no dict with the right keys")
        for name, kind in self.fields.items():
            kind.check(value[name], f"{where}.{name}", sizes)


# How deep parameters may be nested.
_DEEPEST = 4


@dataclass(frozen=True)
class Plain(Kind):
    """What a parameter may be: numbers, texts, arrays, lists of these, estimators."""

    depth: int = 0

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the kind only; what a parameter means is checked by its estimator."""
        if value is None or type(value) in (bool, float, str):
            return
        if type(value) is int:
            _check_size(value, where)
            return
        if type(value) is np.ndarray and value.dtype.kind in "biufU":
            return
        inner = Plain(self.depth + 1)
        if type(value) in (list, tuple) and self.depth < _DEEPEST:
            for each in value:
                inner.check(each, where, sizes)
            return
        if type(value) is dict and self.depth < _DEEPEST:
            Mapping(inner).check(value, where, sizes)
            return
        if type(value) is sparse.csr_array:
            Rows("n", "f", "biuf").check(value, where, Sizes())
            return
        check_object(value, where, Sizes())


@dataclass(frozen=True)
class Part(Kind):
    """An object of one of some classes, with forms of their own.

    Attributes
    ----------
    names : tuple of str
        Module and class.
    sizes : dict of str to str
        Names of sizes there, and what they are called here.
    is_fitted : bool
        Whether an estimator has to be fitted.
    """

    names: tuple[str, ...]
    sizes: dict[str, str] = field(default_factory=dict)
    is_fitted: bool = True

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Check the class, and then the object with the sizes that are known."""
        if name_class(type(value)) not in self.names:
            raise UnfitError(f"{where} is a {type(value).__name__}")
        if self.is_fitted and _is_bare(value, FORMS[name_class(type(value))]):
            raise UnfitError(f"{where} is not fitted")
        inner = Sizes(
            {there: sizes[here] for there, here in self.sizes.items() if here in sizes}
        )
        check_object(value, where, inner)
        for there, here in self.sizes.items():
            if there in inner:
                sizes.meet(here, inner[there], where)


def part(*names: str, **sizes: str) -> Part:
    """Return the kind of objects of these classes."""
    return Part(names, sizes)


@dataclass(frozen=True)
class Form:
    """What the objects of a class look like.

    Attributes
    ----------
    fields : dict of str to Kind
        What is set beside parameters, in the order in which sizes become known.
    others : Kind or None
        What attributes may be that are not named, if there may be any.
    rules : dict of str to callable
        What has to be true of an object with these fields, in words.
    measures : dict of str to callable
        Sizes that follow from the object when it is complete.
    pack : callable or None
        Takes the attributes and returns those that are written.
    rebuild : callable or None
        Takes an object that was checked and sets what was not written.
    """

    fields: dict[str, Kind] = field(default_factory=dict)
    others: Kind | None = None
    rules: dict[str, Callable[[Any], bool]] = field(default_factory=dict)
    measures: dict[str, Callable[[Any], int]] = field(default_factory=dict)
    pack: Callable[[dict], dict] | None = None
    rebuild: Callable[[Any], None] | None = None


# Module and class -> form. Filled by corral.persist._forms.
FORMS: dict[str, Form] = {}


def name_class(cls: type) -> str:
    """Return the module and the name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def check_object(value: Any, where: str, sizes: Sizes) -> None:
    """Check an object that came from a file, and make it complete.

    Parameters
    ----------
    value : object
    where : str
        What it is called in errors.
    sizes : Sizes
        Those that are known from outside; the others are added.
    """
    form = FORMS.get(name_class(type(value)))
    if form is None:
        raise UnfitError(f"{where} is a {type(value).__name__}")
    is_named = hasattr(value, "_asdict")
    found = value._asdict() if is_named else dict(vars(value))
    if _is_estimator(value):
        _check_parameters(value, found, where)
    if _is_bare(value, form):
        # As the estimators that are parameters.
        _check_others(form, found, value, where)
        return
    _check_fields(form, found, where, sizes)
    _check_others(form, found, value, where)
    for words, is_true in form.rules.items():
        if not is_true(value):
            raise UnfitError(f"{where}: {words}")
    if form.rebuild is not None:
        form.rebuild(value)
    for name, measure in form.measures.items():
        sizes.meet(name, measure(value), where)


def _is_estimator(value: Any) -> bool:
    return hasattr(type(value), "_get_param_names")


def _is_bare(value: Any, form: Form) -> bool:
    """Return whether an object is an estimator that has nothing that a fit sets."""
    if not form.fields or not _is_estimator(value):
        return False
    return vars(value).keys().isdisjoint(form.fields)


class _MemoryLimit(Kind):
    """Bytes, a text such as "2GB", or None."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is bool:
            raise UnfitError(f"{where} is neither a number nor a text")
        Plain().check(value, where, sizes)
        read_limit(value)


# Parameters whose value is looked at when a model is asked, not only in a fit.
_PARAMETERS: dict[str, Kind] = {"n_jobs": Threads(), "memory_limit": _MemoryLimit()}

# What scikit-learn writes into any transformer: the kind of frame that it gives.
_OUTPUT = "_sklearn_output_config"
_FRAMES = Record({"transform": text("default", "pandas", "polars")})


def _check_parameters(value: Any, found: dict[str, Any], where: str) -> None:
    """Check the parameters of an estimator, and take them from what was found."""
    for name in type(value)._get_param_names():
        if name not in found:
            raise UnfitError(f"{where} has no {name}")
        kind = _PARAMETERS.get(name, Plain())
        kind.check(found.pop(name), f"{where}.{name}", Sizes())
    if _OUTPUT in found and hasattr(value, "set_output"):
        _FRAMES.check(found.pop(_OUTPUT), f"{where}.{_OUTPUT}", Sizes())
    if getattr(value, "_parameter_constraints", None):
        value._validate_params()


def _check_fields(form: Form, found: dict[str, Any], where: str, sizes: Sizes) -> None:
    """Check what a fit sets, and take it from what was found."""
    for name, kind in form.fields.items():
        inner = f"{where}.{name}"
        if name in found:
            kind.check(found.pop(name), inner, sizes)
        elif not isinstance(kind, Maybe):
            raise UnfitError(f"{inner} is not there")


def _check_others(form: Form, found: dict[str, Any], value: Any, where: str) -> None:
    for name, each in found.items():
        # An attribute must not stand before a method.
        if form.others is None or hasattr(type(value), name):
            raise UnfitError(f"{where} has the unknown attribute {name[:40]!r}")
        form.others.check(each, f"{where}.{name}", Sizes())


def keep_but(*names: str) -> Callable[[dict], dict]:
    """Return what leaves out some attributes when an object is packed."""
    return lambda found: {key: found[key] for key in found if key not in names}
