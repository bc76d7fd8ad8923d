"""
Why is a row an outlier?
========================

Nine errors of three kinds are hidden in a table of weather stations. The fit finds
them, and ``explain`` tells which column gives each of them away.
"""

# %%
# A table with errors
# -------------------
# Stations of three kinds: on the coast, in a valley, on a summit. In nine rows
# something went wrong: three temperatures are in Fahrenheit, three pressures in
# millimetres of mercury, and in three rows wind and rain are mixed up.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
columns = ["temperature", "pressure", "wind", "rain"]
kinds = [[15, 1015, 25, 70], [18, 990, 8, 40], [2, 850, 45, 100]]
spreads = [2, 5, 3, 6]
rows = [rng.normal(kind, spreads, (100, 4)) for kind in kinds]
stations = pd.DataFrame(np.concatenate(rows), columns=columns)

fahrenheit, mercury, mixed_up = [10, 120, 150], [5, 90, 130], [30, 60, 220]
stations.loc[fahrenheit, "temperature"] *= 1.8
stations.loc[fahrenheit, "temperature"] += 32
stations.loc[mercury, "pressure"] *= 0.75
wind_and_rain = stations.loc[mixed_up, ["wind", "rain"]].to_numpy()
stations.loc[mixed_up, ["rain", "wind"]] = wind_and_rain

# %%
# Find them
# ---------
# The columns have different units, so each is divided by its spread first.

from sklearn.preprocessing import StandardScaler

from corral import COR

scaler = StandardScaler().set_output(transform="pandas")
X = scaler.fit_transform(stations)
model = COR(n_clusters=3, n_outliers=9, random_state=0).fit(X)

found = np.flatnonzero(model.labels_ == -1).tolist()
print("found  ", found)
print("planted", sorted(fahrenheit + mercury + mixed_up))

# %%
# Ask why
# -------
# ``explain`` returns a data frame of the kind that it was given. For each row it has
# the cluster that is nearest, and the features that set the row apart from it, in units
# of that cluster's own spread.

reasons = model.explain(X.iloc[found], n_features=2)
reasons.index = found
names = ["nearest_label", "feature_1", "difference_1", "feature_2", "difference_2"]
print(reasons[names].round(1).to_string())

# %%
# In words, with the values of the table:

for row, reason in reasons.iterrows():
    value = stations.loc[row, reason["feature_1"]]
    side = "above" if reason["difference_1"] > 0 else "below"
    print(
        f"row {row}: {reason['feature_1']} is {value:.0f}, "
        f"{abs(reason['difference_1']):.0f} spreads {side} cluster "
        f"{reason['nearest_label']}"
    )

# %%
# What the score is made of
# -------------------------
# The score of a row is the sum of three costs: its labels do not fit the cluster, its
# labels are rare, and it lies far from the centres of its cells. The same is shown for
# the nine strangest rows that are no outliers.

everything = model.explain(X)
strangest = everything.sort_values("score", ascending=False).head(18)[::-1]
parts = {
    "label_cost": "labels that do not fit",
    "rarity_cost": "rare labels",
    "distance_cost": "distance",
}

fig, ax = plt.subplots(layout="constrained")
left = np.zeros(len(strangest))
for (column, name), color in zip(
    parts.items(), ["#0072B2", "#E69F00", "#009E73"], strict=True
):
    rows = strangest.index.astype(str)
    ax.barh(rows, strangest[column], left=left, label=name, color=color)
    left += strangest[column].to_numpy()
ax.axvline(-model.offset_, color="black", linestyle="--", linewidth=1, label="cut")
ax.set(xlabel="cost", ylabel="row", title="The strangest rows, and what they cost")
ax.legend(loc="lower right")
plt.show()
