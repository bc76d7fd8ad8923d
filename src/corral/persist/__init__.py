"""Models in files: written complete or not at all, read without running code of theirs.

The file is skops' format, a zip archive of arrays and a description, plus a page that
names the versions that wrote it. Unlike a pickle it cannot bring code along. What is
read is one of a fixed list of classes, and its arrays fit each other.
"""

from corral.persist._models import load, save

__all__ = ["load", "save"]
