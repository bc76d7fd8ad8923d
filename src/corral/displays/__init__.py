"""Pictures of what a fit found, in the way of scikit-learn's displays."""

from corral.displays._cluster_map import ClusterMapDisplay
from corral.displays._consensus import ConsensusDisplay
from corral.displays._outlier_cost import OutlierCostDisplay
from corral.displays._partition_count import PartitionCountDisplay
from corral.displays._selection import SelectionDisplay

__all__ = [
    "ClusterMapDisplay",
    "ConsensusDisplay",
    "OutlierCostDisplay",
    "PartitionCountDisplay",
    "SelectionDisplay",
]
