"""Every method by its name. Nothing here knows data sets by name, or measures."""

from benchmarks.paper.methods import _detectors, _joint
from benchmarks.paper.methods._base import Method, Task
from benchmarks.paper.methods._fit import fit

__all__ = ["METHODS", "Method", "Task", "find", "fit"]

METHODS: dict[str, Method] = {
    method.name: method for method in (*_joint.METHODS, *_detectors.METHODS)
}


def find(name: str) -> Method:
    """Return the method with this name."""
    if name not in METHODS:
        raise ValueError(
            f"The method {name!r} is not known. Choose from {', '.join(METHODS)}."
        )
    return METHODS[name]
