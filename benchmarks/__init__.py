"""Measurements of corral that are no part of the package."""
