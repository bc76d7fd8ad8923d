"""
How many clusters, how many outliers?
=====================================

COR chooses the numbers that are not given, says why, and tells how sure it is.
"""

# %%
# Data of which nobody knows the numbers
# --------------------------------------
# Five groups of points, and twenty-five that belong to none of them. COR is told
# neither number.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(1)
centers = np.array([[-7.0, 0.0], [0.0, 6.0], [6.0, -4.0], [8.0, 7.0], [-5.0, -9.0]])
groups = [rng.normal(center, 1.0, (120, 2)) for center in centers]
strewn = rng.uniform(-25, 25, (25, 2))
X = np.concatenate([*groups, strewn])

# %%
# A fit that chooses
# ------------------
# Without ``n_clusters`` and ``n_outliers``, both are chosen, and ``selection_`` has the
# reason, the runner-up and all candidates.

from corral import COR

model = COR(random_state=0).fit(X)
print(model.n_clusters_, "clusters and", model.n_outliers_, "outliers")
print(model.selection_.reason)

# %%
# The curves behind it
# --------------------
# Left: up to the chosen number, any two clusters are told apart. Middle: the gap below
# the strangest rows is far wider than chance makes it.

from corral.displays import SelectionDisplay

SelectionDisplay.from_estimator(model)
plt.show()

# %%
# What was found
# --------------

from corral.displays import ClusterMapDisplay

ClusterMapDisplay.from_estimator(model, X)
plt.show()

# %%
# How sure is it?
# ---------------
# Partitions are drawn again, fifty times: how often is a row set aside, and how often
# is its nearest cluster the same? Rows near the cut are those in doubt.

sure = (model.label_confidence_ >= 0.9).mean()
doubtful = (model.outlier_confidence_ > 0.25) & (model.outlier_confidence_ < 0.75)
print(f"{sure:.0%} of the rows have a sure cluster")
print("in doubt, set aside or not:", np.flatnonzero(doubtful))
print("stability of the clusters:", model.cluster_stability_.round(2))

# %%
# Choosing without a fit
# ----------------------
# ``select`` answers the same question within limits of yours. Where outliers are sure
# to be there, say how many at least.

from corral import select

found = select(X, k_range=(2, 8), o_range=(10, 60), random_state=0)
print(found.n_clusters_, "clusters and", found.n_outliers_, "outliers")
print(found.table.shape[0], "candidates, such as the chosen one:")
print(found.table[found.columns["is_chosen"]].T)
