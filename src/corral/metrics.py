"""How well clusters and outliers agree with the truth: the measures of the paper.

In labels, -1 stands for outliers. The four measures that compare two labelings and
:func:`overall_score` are those of Section 6.1 of [1]_, whose equations have no numbers.

References
----------
.. [1] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
   Transactions on Knowledge and Data Engineering 33(6), 2021.
   https://doi.org/10.1109/TKDE.2019.2954317
"""

import warnings

import numpy as np
from sklearn.metrics import (
    adjusted_rand_score,
    average_precision_score,
    f1_score,
    jaccard_score,
    normalized_mutual_info_score,
    roc_auc_score,
)

__all__ = [
    "nmi_score",
    "outlier_average_precision_score",
    "outlier_f_score",
    "outlier_jaccard_score",
    "outlier_roc_auc_score",
    "overall_score",
    "rn_score",
]

_OUTLIER = -1


def nmi_score(labels_true, labels_pred) -> float:
    r"""Normalised mutual information of two labelings, with the geometric mean.

    With n rows, of which :math:`n_{ij}` have label i in one labeling and j in the
    other, and with the sums :math:`n_{i+}` and :math:`n_{+j}` over j and i:

    .. math::

        \mathrm{NMI} = \frac{\sum_{i,j} n_{ij} \log \frac{n\, n_{ij}}{n_{i+} n_{+j}}}
        {\sqrt{\left( \sum_i n_{i+} \log \frac{n_{i+}}{n} \right)
        \left( \sum_j n_{+j} \log \frac{n_{+j}}{n} \right)}}.

    Outliers, labelled -1, are one special cluster in both labelings.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The true clusters, whole numbers from 0 up; -1 for outliers.
    labels_pred : array-like of shape (n_samples,)
        The clusters found, in the same way. Only which rows are together counts, not
        the numbers of the clusters.

    Returns
    -------
    score : float
        From 0 for unrelated labelings to 1 for the same one.

    See Also
    --------
    sklearn.metrics.normalized_mutual_info_score : Does the work here, with
        ``average_method="geometric"``; its default is the arithmetic mean.

    Notes
    -----
    If all rows have the same label in one labeling, the formula is 0 / 0. The score is
    1 if that is so in both, which are the same then, and 0 otherwise.

    Examples
    --------
    >>> from corral.metrics import nmi_score
    >>> nmi_score([0, 0, 1, 1, -1, -1], [1, 1, 0, 0, -1, -1])
    1.0
    >>> round(nmi_score([0, 0, 1, 1, -1, -1], [0, 0, 1, -1, 1, -1]), 3)
    0.579
    """
    labels_true, labels_pred = _read_pair(labels_true, labels_pred)
    score = normalized_mutual_info_score(
        labels_true, labels_pred, average_method="geometric"
    )
    return float(score)


def rn_score(labels_true, labels_pred) -> float:
    r"""Normalised Rand index of two labelings, the paper's :math:`R_n`.

    The share of the pairs of rows on which the labelings agree, less what chance gives,
    as a share of the most it can be. With n rows, of which :math:`n_{ij}` have label i
    in one labeling and j in the other, and with the sums :math:`n_{i+}` and
    :math:`n_{+j}` over j and i:

    .. math::

        R_n = \frac{\sum_{i,j} \binom{n_{ij}}{2} - E}
        {\frac{1}{2} \left( \sum_i \binom{n_{i+}}{2} + \sum_j \binom{n_{+j}}{2} \right)
        - E}, \qquad
        E = \sum_i \binom{n_{i+}}{2} \sum_j \binom{n_{+j}}{2} \bigg/ \binom{n}{2}.

    Outliers, labelled -1, are one special cluster in both labelings.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The true clusters, whole numbers from 0 up; -1 for outliers.
    labels_pred : array-like of shape (n_samples,)
        The clusters found, in the same way. Only which rows are together counts, not
        the numbers of the clusters.

    Returns
    -------
    score : float
        1 for the same labeling, 0 on average for random ones; negative for those that
        agree less than random ones.

    See Also
    --------
    sklearn.metrics.adjusted_rand_score : The same measure by its other name.

    Notes
    -----
    The formula is 0 / 0 if all rows are together in both labelings, or all apart in
    both. They are the same then, and the score is 1.

    Examples
    --------
    >>> from corral.metrics import rn_score
    >>> rn_score([0, 0, 1, 1, -1, -1], [1, 1, 0, 0, -1, -1])
    1.0
    >>> rn_score([0, 0, -1, -1], [0, -1, 0, -1])
    -0.5
    """
    labels_true, labels_pred = _read_pair(labels_true, labels_pred)
    return float(adjusted_rand_score(labels_true, labels_pred))


def outlier_jaccard_score(labels_true, labels_pred) -> float:
    r"""Jaccard index of the outliers found and the true ones.

    With the outliers O found and the true ones :math:`O^*`:

    .. math::

        \mathrm{Jaccard} = \frac{|O \cap O^*|}{|O \cup O^*|}.

    Outliers are the rows labelled -1; all other labels are the same here.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        -1 for the true outliers, whole numbers from 0 up for other rows.
    labels_pred : array-like of shape (n_samples,)
        -1 for the outliers found, in the same way.

    Returns
    -------
    score : float
        From 0, if no true outlier is found, to 1, if they are found and no other row.

    See Also
    --------
    outlier_f_score : A monotone function of it, F = 2 J / (1 + J).

    Notes
    -----
    Without outliers in either labeling the formula is 0 / 0. The labelings agree, and
    the score is 1. With outliers in only one of them it is 0.

    Examples
    --------
    >>> from corral.metrics import outlier_jaccard_score
    >>> outlier_jaccard_score([0, 0, 1, -1, -1, -1], [0, 0, -1, -1, -1, 1])
    0.5
    """
    score = jaccard_score(*_read_outliers(labels_true, labels_pred), zero_division=1.0)
    return float(score)


def outlier_f_score(labels_true, labels_pred) -> float:
    r"""F-measure of the outliers found: precision and recall in one number.

    With the outliers O found and the true ones :math:`O^*`:

    .. math::

        F = 2\, \frac{\mathrm{precision} \cdot \mathrm{recall}}
        {\mathrm{precision} + \mathrm{recall}}, \qquad
        \mathrm{precision} = \frac{|O \cap O^*|}{|O|}, \qquad
        \mathrm{recall} = \frac{|O \cap O^*|}{|O^*|}.

    Outliers are the rows labelled -1; all other labels are the same here.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        -1 for the true outliers, whole numbers from 0 up for other rows.
    labels_pred : array-like of shape (n_samples,)
        -1 for the outliers found, in the same way.

    Returns
    -------
    score : float
        From 0, if no true outlier is found, to 1, if they are found and no other row.

    See Also
    --------
    outlier_jaccard_score : A monotone function of it, J = F / (2 - F).

    Notes
    -----
    It is computed as :math:`2 |O \cap O^*| / (|O| + |O^*|)`, which is the same and is 0
    where no true outlier is found. Without outliers in either labeling this is 0 / 0
    too; the labelings agree, and the score is 1.

    Examples
    --------
    >>> from corral.metrics import outlier_f_score
    >>> outlier_f_score([0, 0, 1, -1, -1, -1], [0, 0, 1, 1, 1, -1])
    0.5
    """
    score = f1_score(*_read_outliers(labels_true, labels_pred), zero_division=1.0)
    return float(score)


def overall_score(values) -> np.ndarray:
    r"""Mean over data sets of each method's value as a share of the best method's.

    With the value :math:`P(A_i, D_j)` of a measure for method i on data set j:

    .. math::

        \mathrm{score}(A_i) = \frac{1}{n} \sum_{j=1}^{n}
        \frac{P(A_i, D_j)}{\max_{i'} P(A_{i'}, D_j)}.

    Parameters
    ----------
    values : array-like of shape (n_methods, n_datasets)
        A measure for which higher is better, in any unit. Those of this module have
        settled already how the outliers, labelled -1, count. NaN where a method gave
        no result.

    Returns
    -------
    scores : ndarray of shape (n_methods,)
        1 for a method that is best on every data set.

    Warns
    -----
    UserWarning
        If data sets are left out, because no method has a positive value on them.

    Notes
    -----
    Differs from the paper: its equation is the sum, without 1 / n. The scores in its
    tables are the mean, in per cent.

    NaN counts as 0, as methods that ran out of memory do in the paper's table of
    detectors. Negative values, which :math:`R_n` can have, count as they are, as in
    the paper, and lower the score. Where the best value is 0 there is nothing to
    divide by, and where it is negative the worst method would have the largest share;
    such data sets are left out of the mean.

    Examples
    --------
    >>> from corral.metrics import overall_score
    >>> overall_score([[0.6, 0.2, 0.9], [0.3, 0.4, 0.9]])
    array([0.83333333, 0.83333333])
    """
    values = np.nan_to_num(_read_table(values), nan=0.0)
    best = values.max(axis=0)
    usable = best > 0
    if not usable.any():
        raise ValueError(
            f"No method has a positive value on any of the {len(best)} data sets. "
            "overall_score needs a measure for which higher is better."
        )
    if not usable.all():
        warnings.warn(
            "No method has a positive value on the data sets in columns "
            f"{np.flatnonzero(~usable).tolist()}; they are left out of overall_score.",
            UserWarning,
            stacklevel=2,
        )
    return (values[:, usable] / best[usable]).mean(axis=1)


def outlier_roc_auc_score(labels_true, outlier_scores) -> float:
    r"""Area under the ROC curve of outlier scores: how often an outlier comes first.

    With the true outliers :math:`O^*`, the other rows I and the scores s:

    .. math::

        \mathrm{AUC} = \frac{1}{|O^*|\, |I|} \sum_{x \in O^*} \sum_{y \in I}
        \left( [s_x > s_y] + \tfrac{1}{2} [s_x = s_y] \right).

    Outliers are the rows labelled -1; all other labels are the same here.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        -1 for the true outliers, whole numbers from 0 up for other rows.
    outlier_scores : array-like of shape (n_samples,)
        Higher is stranger, as in ``outlier_scores_``; ``score_samples`` and
        ``decision_function`` have the opposite sign. Only their order counts, so they
        may be infinite.

    Returns
    -------
    score : float
        1 if all outliers have higher scores than all other rows, 0.5 on average for
        random scores and exactly for constant ones.

    Raises
    ------
    ValueError
        If all rows are outliers, or none is: there are no pairs to compare.

    See Also
    --------
    sklearn.metrics.roc_auc_score : Does the work here.

    Examples
    --------
    >>> from corral.metrics import outlier_roc_auc_score
    >>> outlier_roc_auc_score([0, 0, 1, -1, -1], [1.0, 2.0, 4.0, 9.0, 3.0])
    0.8333333333333334
    """
    return float(roc_auc_score(*_read_ranking(labels_true, outlier_scores)))


def outlier_average_precision_score(labels_true, outlier_scores) -> float:
    r"""Average precision of outlier scores: mean precision at each true outlier.

    With the precision :math:`P_t` and recall :math:`R_t` of calling the rows outliers
    whose score is at least t, over the distinct scores from the highest down, where
    :math:`R_{t^+}` is the recall at the next higher score, or 0:

    .. math::

        \mathrm{AP} = \sum_t (R_t - R_{t^+})\, P_t.

    Outliers are the rows labelled -1; all other labels are the same here.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        -1 for the true outliers, whole numbers from 0 up for other rows.
    outlier_scores : array-like of shape (n_samples,)
        Higher is stranger, as in ``outlier_scores_``; ``score_samples`` and
        ``decision_function`` have the opposite sign. Only their order counts, so they
        may be infinite.

    Returns
    -------
    score : float
        1 if all outliers have higher scores than all other rows. For constant scores it
        is the share of outliers, which is near the mean for random ones.

    Raises
    ------
    ValueError
        If all rows are outliers, or none is: there is nothing to tell apart.

    See Also
    --------
    sklearn.metrics.average_precision_score : Does the work here.

    Examples
    --------
    >>> from corral.metrics import outlier_average_precision_score
    >>> outlier_average_precision_score([0, 0, 1, -1, -1], [1.0, 2.0, 4.0, 9.0, 3.0])
    0.8333333333333333
    """
    return float(average_precision_score(*_read_ranking(labels_true, outlier_scores)))


def _read_pair(labels_true, labels_pred) -> tuple[np.ndarray, np.ndarray]:
    """Return both labelings, checked."""
    labels_true = _read_labels(labels_true, "labels_true")
    labels_pred = _read_labels(labels_pred, "labels_pred")
    _check_same_length(labels_true, labels_pred, "labels_pred")
    return labels_true, labels_pred


def _read_outliers(labels_true, labels_pred) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are outliers, in truth and as found."""
    labels_true, labels_pred = _read_pair(labels_true, labels_pred)
    return labels_true == _OUTLIER, labels_pred == _OUTLIER


def _read_ranking(labels_true, outlier_scores) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are outliers, and the rank of each row from 0 for the least."""
    labels_true = _read_labels(labels_true, "labels_true")
    scores = _read_vector(
        outlier_scores, "outlier_scores", "Higher should mean stranger."
    )
    _check_same_length(labels_true, scores, "outlier_scores")
    is_outlier = labels_true == _OUTLIER
    n_outliers = np.count_nonzero(is_outlier)
    if n_outliers in (0, len(is_outlier)):
        raise ValueError(
            f"labels_true has {n_outliers} outliers (-1) among {len(is_outlier)} rows; "
            "it should have outliers and other rows, which are compared. Leave out "
            "data with one kind only."
        )
    # Only the order counts. Ranks keep it, and are finite where scores are not.
    return is_outlier, np.unique(scores, return_inverse=True)[1]


def _read_labels(labels, name: str) -> np.ndarray:
    values = _read_vector(
        labels,
        name,
        "Turn text into numbers from 0 up, and truth values into -1 for outliers and "
        "0 for other rows.",
    )
    whole = np.isfinite(values) & (values == np.floor(values))
    wrong = values[~whole | (values < _OUTLIER)]
    if len(wrong):
        raise ValueError(
            f"{name} holds {wrong[0]}; labels should be whole numbers from 0 up, or -1 "
            "for an outlier. Relabel other kinds of noise as -1."
        )
    return values


def _read_vector(values, name: str, advice: str) -> np.ndarray:
    """Return numbers as an array with one axis, without NaN.

    The advice is for values that are not numbers.
    """
    values = np.asarray(values)
    if values.dtype.kind == "O":
        values = np.asarray(values.tolist())
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"{name} has shape {values.shape}; it should be (n_samples,) with at least "
            "one entry."
        )
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} holds values of type {values.dtype}; it should hold numbers. "
            f"{advice}"
        )
    n_missing = np.count_nonzero(np.isnan(values))
    if n_missing:
        raise ValueError(
            f"{name} has {n_missing} NaN among {len(values)} entries; it should have a "
            "number for each row. Leave out the rows without one."
        )
    return values


def _check_same_length(labels_true: np.ndarray, other: np.ndarray, name: str) -> None:
    if len(labels_true) != len(other):
        raise ValueError(
            f"labels_true has {len(labels_true)} entries but {name} has {len(other)}. "
            "Give both for the same rows."
        )


def _read_table(values) -> np.ndarray:
    """Return the values of methods on data sets, which are finite or NaN."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"values has shape {values.shape}; it should be (n_methods, n_datasets) "
            "with at least one row and one column."
        )
    if np.isinf(values).any():
        raise ValueError(
            "values holds infinite numbers; they should be finite, or NaN where a "
            "method gave no result."
        )
    return values
