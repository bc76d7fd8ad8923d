"""
A first fit
===========

Clusters and outliers from one call, and three pictures of what was found.
"""

# %%
# Data with errors in it
# ----------------------
# Four groups of points, and thirty points that belong to none of them.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
centers = np.array([[-6.0, 0.0], [0.0, 5.0], [5.0, -3.0], [7.0, 6.0]])
groups = [rng.normal(center, 1.0, (150, 2)) for center in centers]
errors = rng.uniform(-14, 14, (30, 2))
X = np.concatenate([*groups, errors])

# %%
# One fit
# -------
# COR needs to know how many clusters to find and how many rows to set aside. Labels run
# from 0 up, and -1 stands for an outlier.

from corral import COR

model = COR(n_clusters=4, n_outliers=30, random_state=0).fit(X)
labels, sizes = np.unique(model.labels_, return_counts=True)
for label, size in zip(labels, sizes, strict=True):
    print("outliers " if label == -1 else f"cluster {label}", size)

# %%
# Where do they lie?
# ------------------
# Two features are drawn as they are; more would be reduced to two.

from corral.displays import ClusterMapDisplay

display = ClusterMapDisplay.from_estimator(model, X)
display.ax_.set_title("Clusters and outliers")
plt.show()

# %%
# How many outliers are there?
# ----------------------------
# The curve of the costs falls steeply among the outliers and bends where the clusters
# begin. A cut near the bend fits the data.

from corral.displays import OutlierCostDisplay

display = OutlierCostDisplay.from_estimator(model, log_rank=True)
display.ax_.set_title("What each row costs, from the strangest down")
plt.show()

# %%
# Do the partitions agree?
# ------------------------
# The clusters come from many K-means runs. Each bright square holds rows that the runs
# keep together, and outliers agree with few rows.

from corral.displays import ConsensusDisplay

display = ConsensusDisplay.from_estimator(model, X)
display.ax_.set_title("How often two rows lie together")
plt.show()

# %%
# New rows
# --------
# The fitted model answers for rows that it has not seen.

print(model.predict([[-6.0, 0.5], [7.5, 5.0], [30.0, -30.0]]))
