"""Clusters and outliers in one go: Clustering with Outlier Removal."""

from corral._cor import COR
from corral._detector import CORDetector

__version__ = "0.1.0"

__all__ = ["COR", "CORDetector", "__version__"]
