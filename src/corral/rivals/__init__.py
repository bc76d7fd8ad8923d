"""Other methods that find clusters and outliers together, for comparison with COR."""

from corral.rivals._charikar import KCenterOutliers, KMedianOutliers
from corral.rivals._density import DBSCAN, HDBSCAN
from corral.rivals._kcc import KCC
from corral.rivals._kmeans_minus_minus import KMeansMinusMinus
from corral.rivals._kmeans_plus_one import KMeansPlusOne
from corral.rivals._lagrangian import LagrangianClustering
from corral.rivals._neo_kmeans import NEOKMeans

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "KCC",
    "KCenterOutliers",
    "KMeansMinusMinus",
    "KMeansPlusOne",
    "KMedianOutliers",
    "LagrangianClustering",
    "NEOKMeans",
]
