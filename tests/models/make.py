"""Writes small models of every kind, which later versions have to read.

Before a release, once its version is set, run from the root of the repository::

    python -m tests.models.make

and commit the new folder, ``tests/models/<version>``. It holds a file for each model
and what it answers in ``answers.json``. Folders of releases are never written again.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.frozen import FrozenEstimator

import corral
from corral import COR, CORDetector, all_methods
from corral.detectors import OPCA
from corral.rivals import KCC, NEOKMeans
from corral.tables import TableModel

HERE = Path(__file__).parent

# What a test compares.
METHODS = ("predict", "score_samples")


def draw_rows():
    """Return rows of the fit and new ones, with few digits."""
    rng = np.random.default_rng(0)
    groups = [rng.normal(center, 1, (15, 3)) for center in (2, 9)]
    X = np.abs(np.concatenate([*groups, rng.uniform(0, 40, (3, 3))])).round(2)
    new = np.abs(np.concatenate([X[::8], rng.normal(5, 5, (7, 3))])).round(2)
    return X, new


def as_table(X):
    """Return rows as a table with columns of several kinds."""
    return pa.table(
        {
            "size": pa.array(X[:, 0]),
            "day": pa.array((X[:, 1] * 1e5).astype(int), pa.timestamp("s")),
            "color": np.where(X[:, 2] > 5, "red", "blue").astype(object),
            "words": [f"item {'old' if x > 5 else 'new'} {int(x)}0" for x in X[:, 0]],
        }
    )


def as_given(name, rows):
    """Return rows in the form in which a model was given them."""
    rows = np.array(rows)
    if name.endswith("-sparse"):
        return sparse.csr_array(rows)
    if name.startswith("table"):
        return as_table(rows)
    return rows.astype(np.float32) if name.endswith("-float32") else rows


def small_cor(**settings):
    return COR(2, n_partitions=8, n_outliers=3, random_state=0, **settings)


def list_models():
    """Return models by name, not fitted, with every class that a file may hold."""
    settings = {"n_clusters": 2, "random_state": 0, "n_estimators": 3, "n_neighbors": 5}
    settings |= {"n_partitions": 8, "min_cluster_size": 3}
    models = {}
    for name, method in all_methods().items():
        known = {key: settings[key] for key in settings if key in method.parameters}
        models[name] = method.make(**known)
    table_cor = small_cor(n_resamples=0)
    return {
        **models,
        "cor": COR(k_max=3, n_partitions=8, n_resamples=4, random_state=0),
        "cor-detector": CORDetector(small_cor()),
        "cor-frozen": CORDetector(FrozenEstimator(small_cor().fit(draw_rows()[0]))),
        "cor-float32": small_cor(strategy="rfs"),
        "cor-cosine": small_cor(metric="cosine", divergence="holoentropy"),
        "cor-clusterers": small_cor(
            partitions=[KMeans(3), MiniBatchKMeans(2), "kmeans"],
            categorical_features=[2],
        ),
        "cor-precomputed": small_cor(partitions="precomputed"),
        "cor-sparse": small_cor(),
        "kcc-sparse": KCC(2, n_partitions=8, outlier_cluster=False, random_state=0),
        "neo-kmeans-sparse": NEOKMeans(2, random_state=0),
        "k-center-sparse": all_methods()["k-center"].make(n_clusters=2),
        "dbscan-sparse": all_methods()["dbscan"].make(eps=3.0),
        "lof-sparse": all_methods()["lof"].make(n_neighbors=5, metric="cosine"),
        "cof-sparse": all_methods()["cof"].make(n_neighbors=5, metric="cosine"),
        "opca-power": OPCA(method="power", random_state=0),
        "opca-products-sparse": OPCA(method="power", random_state=0),
        "table": TableModel(table_cor, exclude=["words"]),
        "table-words": TableModel(
            small_cor(metric="cosine"), columns=["words"], tfidf=True, scale="robust"
        ),
        "table-sparse": TableModel(models["kmeans--"]),
        "table-detector": TableModel(models["lof"], columns=["size", "day"]),
    }


def fit_models():
    """Return fitted models by name."""
    X, _ = draw_rows()
    fitted = {}
    for name, model in list_models().items():
        rows = X
        if name == "opca-products-sparse":
            # Fewer values than a covariance of all columns has.
            rows = X[:2]
        if name == "cor-precomputed":
            rows = (X > 5).astype(int)
        fitted[name] = model.fit(as_given(name, rows))
    return fitted


def answer(name, model, rows):
    """Return what a model says about new rows."""
    given = as_given(name, rows)
    if name == "cor-precomputed":
        given = (given > 5).astype(int)
    return {
        method: getattr(model, method)(given).tolist()
        for method in METHODS
        if hasattr(model, method)
    }


def main():
    folder = HERE / corral.__version__
    folder.mkdir(exist_ok=True)
    _, new = draw_rows()
    answers = {}
    for name, model in fit_models().items():
        model.save(folder / f"{name}.skops")
        answers[name] = answer(name, model, new)
    text = json.dumps({"rows": new.tolist(), "answers": answers}, indent=1)
    (folder / "answers.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
