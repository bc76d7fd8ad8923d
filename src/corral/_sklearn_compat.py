"""The only home of private scikit-learn names."""

# Private in 1.7 to 1.9; every scikit-learn estimator declares its parameters this way.
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

# Private in 1.7 to 1.9; there is no public check of sample weights.
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_sample_weight",
    "_fit_context",
]
