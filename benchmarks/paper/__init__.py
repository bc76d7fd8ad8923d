"""Do we get the paper's tables and figures? ``python -m benchmarks.paper --help``."""
