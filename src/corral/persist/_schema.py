"""The description in a model's file: only what is on a list is given to skops.

skops trusts all estimators of scikit-learn, all functions of NumPy and much else by
itself. So the description is written anew from what is known here, node by node, and
skops never sees the rest.
"""

import json
from typing import Any

from corral.persist._archive import measure_arrays
from corral.persist._kinds import FORMS

# What skops has of containers and values: loader -> class.
_PLAIN = {
    "DictNode": "builtins.dict",
    "ListNode": "builtins.list",
    "TupleNode": "builtins.tuple",
    "TypeNode": "builtins.str",
    "JsonNode": "builtins.str",
    "NdArrayNode": "numpy.ndarray",
    "SparseMatrixNode": "scipy.sparse._csr.csr_array",
}

_ARRAYS = ("NdArrayNode", "SparseMatrixNode")

# How deep a description may be nested. Models come to about 30.
_DEEPEST = 100


# An array may be named more than once, and is looked at in full each time. A detector
# around a frozen model has all of its arrays twice, in its parameter and in what it
# fitted; nothing that is fitted has more. Many times are a way to take hours.
_MOST_LOOKS = 4
_FREE_LOOKS = 16 * 2**20


class SchemaError(ValueError):
    """A description does not describe a model."""


class StrangerError(SchemaError):
    """A description names a class that is not on the list."""


class _Arrays:
    """The arrays of an archive: which are used, and how much is left to look at.

    Parameters
    ----------
    sizes : dict of str to int
        How many bytes each has.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes
        self._left = _MOST_LOOKS * sum(sizes.values()) + _FREE_LOOKS
        self._used: set[str] = set()

    def take(self, file: str) -> None:
        """Note that an array is used once more."""
        self._used.add(file)
        self._left -= self._sizes.get(file, 0)
        if self._left < 0:
            raise SchemaError(f"it uses {file[:40]!r} and others too many times")

    def check(self) -> None:
        """Refuse arrays that are not used, and uses of those that are not there."""
        wrong = sorted(self._used ^ self._sizes.keys())
        if wrong:
            raise SchemaError(f"{wrong[0][:40]!r} is not both described and there")


def clean_schema(schema: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Return a description that has nothing in it but what is known.

    Parameters
    ----------
    schema : Any
        As it is in the file.
    sizes : dict of str to int
        The arrays of the archive, all of which the description has to use, and how
        many bytes each has.

    Returns
    -------
    cleaned : dict
        For skops.
    """
    if not isinstance(schema, dict):
        raise SchemaError("schema.json is no description")
    protocol = schema.get("protocol")
    if type(protocol) is not int:
        raise SchemaError("schema.json does not say which protocol of skops it is of")
    arrays = _Arrays(sizes)
    cleaned = _clean(schema, arrays, 0)
    arrays.check()
    # The nodes on the list are the same in all protocols; skops refuses newer ones.
    return {**cleaned, "protocol": protocol}


def number_arrays(
    schema: Any, arrays: dict[str, bytes]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a clean description with its arrays numbered from one.

    skops numbers them by where they lie in memory. So the same model gives the same
    file, and the file tells nothing of the process that wrote it.

    Parameters
    ----------
    schema : Any
        As skops writes it.
    arrays : dict of str to bytes

    Returns
    -------
    schema : dict
    arrays : dict of str to bytes
    """
    schema = clean_schema(schema, measure_arrays(arrays))
    numbered: dict[str, bytes] = {}
    numbers: dict[str, int] = {}
    rest: list[Any] = [schema]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            rest += reversed(node.values())
        elif isinstance(node, list):
            rest += reversed(node)
        if isinstance(node, dict) and node.get("__loader__") in _ARRAYS:
            old = node["file"]
            number = numbers.setdefault(old, len(numbers) + 1)
            node["__id__"], node["file"] = number, f"{number}{old[old.index('.') :]}"
            numbered[node["file"]] = arrays[old]
    return schema, numbered


def trusted_types() -> list[str]:
    """Return the names of all classes that skops may make."""
    return sorted({*_PLAIN.values(), *FORMS})


def _clean(node: Any, arrays: _Arrays, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise SchemaError("schema.json is nested too deeply")
    loader, name = _read_kind(node)
    module, _, class_name = name.rpartition(".")
    kept = {"__loader__": loader, "__module__": module, "__class__": class_name}
    content = node.get("content")
    if loader in ("ListNode", "TupleNode"):
        items = _expect(content, list)
        return {**kept, "content": [_clean(each, arrays, depth + 1) for each in items]}
    if loader == "ObjectNode":
        # Without a form for its state an object has none.
        return {**kept, "content": _clean_dict(content, arrays, depth + 1)}
    if loader == "DictNode":
        return _clean_dict(node, arrays, depth)
    if loader == "JsonNode":
        return {**kept, "content": _check_scalar(content), "is_json": True}
    if loader in _ARRAYS:
        return {**kept, **_clean_array(node, loader, arrays)}
    raise SchemaError(f"{name} stands where it cannot")


def _read_kind(node: Any) -> tuple[str, str]:
    """Return the loader and the class of a node, if they are on the list."""
    parts = [
        _expect(node, dict).get(key)
        for key in ("__loader__", "__module__", "__class__")
    ]
    if not all(isinstance(each, str) for each in parts):
        raise SchemaError("a part of schema.json has no class")
    loader, name = parts[0], f"{parts[1]}.{parts[2]}"
    is_plain = _PLAIN.get(loader) == name
    is_form = loader in ("ObjectNode", "TupleNode") and name in FORMS
    if not (is_plain or is_form):
        raise StrangerError(name[:80])
    return loader, name


def _clean_dict(node: Any, arrays: _Arrays, depth: int) -> dict[str, Any]:
    loader, _ = _read_kind(node)
    if loader != "DictNode":
        raise SchemaError("an object has no attributes")
    content = _expect(node.get("content"), dict)
    key_types = _expect(node.get("key_types"), dict)
    kinds = _expect(key_types.get("content"), list)
    if len(kinds) != len(content) or any(_read_kind(k)[0] != "TypeNode" for k in kinds):
        raise SchemaError("a dict has keys that are no texts")
    text = {"__loader__": "TypeNode", "__module__": "builtins", "__class__": "str"}
    keys = {"__loader__": "ListNode", "__module__": "builtins", "__class__": "list"}
    return {
        "__loader__": "DictNode",
        "__module__": "builtins",
        "__class__": "dict",
        "key_types": {**keys, "content": [text] * len(content)},
        "content": {
            key: _clean(each, arrays, depth + 1) for key, each in content.items()
        },
    }


def _clean_array(node: dict[str, Any], loader: str, arrays: _Arrays) -> dict[str, Any]:
    number = node.get("__id__")
    kind, ending = ("numpy", "npy") if loader == "NdArrayNode" else ("scipy", "npz")
    file = f"{number}.{ending}"
    # The same number is the same array, which skops then reads once.
    if type(number) is not int or node.get("file") != file or node.get("type") != kind:
        raise SchemaError("an array is described in an unknown way")
    arrays.take(file)
    return {"__id__": number, "type": kind, "file": file}


def _check_scalar(content: Any) -> str:
    value = json.loads(_expect(content, str))
    if isinstance(value, (dict, list)):
        raise SchemaError("a value is no number and no text")
    return content


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise SchemaError(f"a part of schema.json is no {kind.__name__}")
    return value
