"""Clusters and outliers in one go: Clustering with Outlier Removal."""

from corral import metrics
from corral._cor import COR
from corral._detector import CORDetector
from corral._registry import all_methods

__version__ = "0.1.0"

__all__ = ["COR", "CORDetector", "__version__", "all_methods", "metrics"]
