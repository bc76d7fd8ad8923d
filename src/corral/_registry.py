"""Every method by its name, for whoever lets users choose one."""

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Kind = Literal["joint", "detector"]

# Name -> kind, module and class. Modules are imported when they are asked for.
_METHODS: dict[str, tuple[Kind, str, str]] = {
    "cor": ("joint", "corral", "COR"),
    "kmeans--": ("joint", "corral.rivals", "KMeansMinusMinus"),
    "kmeans+1": ("joint", "corral.rivals", "KMeansPlusOne"),
    "kcc": ("joint", "corral.rivals", "KCC"),
    "neo-kmeans": ("joint", "corral.rivals", "NEOKMeans"),
    "lagrangian": ("joint", "corral.rivals", "LagrangianClustering"),
    "k-center": ("joint", "corral.rivals", "KCenterOutliers"),
    "k-median": ("joint", "corral.rivals", "KMedianOutliers"),
    "dbscan": ("joint", "corral.rivals", "DBSCAN"),
    "hdbscan": ("joint", "corral.rivals", "HDBSCAN"),
    "cor-detector": ("detector", "corral", "CORDetector"),
    "lof": ("detector", "corral.detectors", "LOF"),
    "iforest": ("detector", "corral.detectors", "IForest"),
    "cof": ("detector", "corral.detectors", "COF"),
    "ldof": ("detector", "corral.detectors", "LDOF"),
    "fast-abod": ("detector", "corral.detectors", "FastABOD"),
    "opca": ("detector", "corral.detectors", "OPCA"),
    "tonmf": ("detector", "corral.detectors", "TONMF"),
    "holoentropy": ("detector", "corral.detectors", "Holoentropy"),
}


@dataclass(frozen=True)
class Method:
    """A method that finds outliers, with or without clusters.

    Attributes
    ----------
    name : str
        Under which users know it.
    kind : {"joint", "detector"}
        A joint method labels rows with their cluster or -1, a detector with +1 or -1.
    estimator : type
        The class.
    """

    name: str
    kind: Kind
    estimator: type

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters with their defaults."""
        signature = inspect.signature(self.estimator)
        return {name: each.default for name, each in signature.parameters.items()}

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return (inspect.getdoc(self.estimator) or "").partition("\n")[0]

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may be sparse."""
        return bool(self.estimator().__sklearn_tags__().input_tags.sparse)

    @property
    def counts_outliers(self) -> bool:
        """Whether the number of outliers can be asked for."""
        return "n_outliers" in self.parameters

    @property
    def predicts(self) -> bool:
        """Whether it answers for rows that were not in the fit."""
        return hasattr(self.estimator(), "predict")

    def make(self, **parameters):
        """Return the estimator with these parameters.

        Parameters
        ----------
        **parameters : dict
            Of the estimator. Those that the method does not know are an error.

        Returns
        -------
        estimator : object
            Not fitted.
        """
        unknown = sorted(set(parameters) - set(self.parameters))
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)} cannot be set for {self.name!r}. It has "
                f"{', '.join(self.parameters)}."
            )
        return self.estimator(**parameters)


def all_methods(kind: Kind | None = None) -> dict[str, Method]:
    """Return every method of the package by its name.

    Parameters
    ----------
    kind : {"joint", "detector"}, default=None
        Only methods of this kind.

    Returns
    -------
    methods : dict of str to Method
        In the order of the documentation.

    Examples
    --------
    >>> from corral import all_methods
    >>> list(all_methods("detector"))[:3]
    ['cor-detector', 'lof', 'iforest']
    >>> all_methods()["kmeans--"].make(n_clusters=3, n_outliers=5)
    KMeansMinusMinus(n_clusters=3, n_outliers=5)
    """
    if kind not in (None, "joint", "detector"):
        raise ValueError(f"kind={kind!r} is not known. Choose 'joint' or 'detector'.")
    return {
        name: Method(name, its_kind, getattr(import_module(module), class_name))
        for name, (its_kind, module, class_name) in _METHODS.items()
        if kind in (None, its_kind)
    }
