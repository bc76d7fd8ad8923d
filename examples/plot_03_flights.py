"""
Which flights are odd, and why?
===============================

Tracks of unequal length become vectors of equal length, COR sets aside the flights that
follow no route, and each of them is called partial, mixed, out of range or of unusual
shape.
"""

# %%
# Flights with errors among them
# ------------------------------
# Six routes between airports. In eighteen flights something went wrong: two flights
# were stored as one, the end or the start is missing, or all positions are shifted.

import matplotlib.pyplot as plt
import numpy as np

from corral.trajectories import make_tracks, plant_errors

tracks = make_tracks(400, n_routes=6, spread_km=40, random_state=0)
tracks, errors = plant_errors(tracks, 18, random_state=1)
print(
    f"{len(tracks)} flights with {tracks.counts.min()} to {tracks.counts.max()} reports"
)

# %%
# Vectors of equal length
# -----------------------
# Fifty points evenly spaced along each path, in kilometres east, north and up, so that
# distances are right in all directions. A last column tells how far a flight jumps.

from corral.trajectories import resample_tracks

flights = resample_tracks(tracks, n_points=50, by="path")
print("vectors:", flights.X.shape)
print("flights with a gap:", np.count_nonzero(flights.gap_share > 0.1))

# %%
# Set aside what follows no route
# -------------------------------

from corral import COR
from corral.trajectories import classify_outliers

model = COR(n_clusters=6, n_outliers=18, random_state=0).fit(flights.X)
kinds = classify_outliers(flights, model.labels_, model.nearest_labels_)
n_found = sum(errors[each.row] != "" for each in kinds)
print(f"{n_found} of 18 errors are among the {len(kinds)} outliers")
for each in kinds[:5]:
    print(f"{each.id}: {each.kind}, {each.reasons[0]}")

# %%
# Draw them
# ---------
# One picture for each kind, over all other flights in grey; a dot marks the start.

colors = {
    "out of range": "#c0392b",
    "partial": "#d98e04",
    "mixed": "#7a3db8",
    "unusual shape": "#00816a",
}
shown = [kind for kind in colors if any(each.kind == kind for each in kinds)]
figure, axes = plt.subplots(
    1, len(shown), figsize=(12, 4.6), sharex=True, sharey=True, layout="constrained"
)
kept = model.labels_ >= 0
for ax, kind in zip(axes, shown, strict=True):
    ax.plot(flights.longitude[kept].T, flights.latitude[kept].T, "0.8", linewidth=0.4)
    rows = [each.row for each in kinds if each.kind == kind]
    for longitude, latitude in zip(
        flights.longitude[rows], flights.latitude[rows], strict=True
    ):
        ax.plot(longitude, latitude, color=colors[kind], linewidth=1.2)
        ax.plot(longitude[0], latitude[0], "o", color=colors[kind], markersize=4)
    # A degree of longitude is shorter than one of latitude.
    ax.set_aspect(1 / np.cos(np.radians(flights.latitude.mean())))
    ax.set(title=f"{kind} ({len(rows)})", xlabel="longitude")
axes[0].set_ylabel("latitude")
plt.show()

# %%
# The same from a file, with maps in a page that can be sent to a colleague::
#
#     corral flights tracks.csv --n-clusters 6 --n-outliers 18 --report flights.html
