"""A fitted estimator as a plain summary, and the summary as one HTML page."""

from corral.report._page import to_html
from corral.report._summary import summarize

__all__ = ["summarize", "to_html"]
