"""How fast corral is, against what, as ratios measured side by side in one run."""
