"""Both numbers, and in words what they rest on."""

from dataclasses import dataclass

from corral._criteria import MIN_TOLD
from corral._search import Answer, Search
from corral._tails import Gaps

# Clusters that are told apart to more than this are simply told apart.
_ENTIRELY = 0.995


@dataclass(frozen=True)
class Choice:
    """Both numbers, and what they rest on.

    Attributes
    ----------
    answer : Answer
        Where the number of clusters is from.
    how : str
        Outliers by a "gap", by "excess", "none", or as "asked".
    n_outliers : int
    n_beyond : int
        Rows beyond the gap.
    runner_up : tuple of (int, int) or None
    """

    answer: Answer
    how: str
    n_outliers: int
    n_beyond: int = 0
    runner_up: tuple[int, int] | None = None

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return self.answer.n_clusters

    def explain(self, gaps: Gaps, search: Search) -> str:
        """Say in words why these numbers were chosen."""
        sentences = [self._explain_clusters(search), self._explain_outliers(gaps)]
        n_small = self.answer.n_outliers - self.answer.n_asked
        if n_small and self.n_clusters < self.answer.n_cut:
            sentences.append(
                f"{_count(n_small, 'row')} in groups too small for a cluster "
                f"{'counts as an outlier' if n_small == 1 else 'count as outliers'}."
            )
        if self.runner_up is not None:
            sentences.append(
                f"The runner-up is {_count(self.runner_up[0], 'cluster')} and "
                f"{_count(self.runner_up[1], 'outlier')}."
            )
        if search.n_searched < search.n_samples:
            sentences.append(
                f"Clusters were searched in {search.n_searched:,} random rows of "
                f"{search.n_samples:,}, gaps in all."
            )
        return " ".join(sentences)

    def _explain_clusters(self, search: Search) -> str:
        answer = self.answer
        is_parted = answer.n_clusters < answer.n_cut
        chosen = _count(answer.n_cut, "group" if is_parted else "cluster")
        if answer.how == "asked":
            return f"{chosen}, because {search.limits.why_fixed}."
        if answer.how == "crowd":
            crowd = "No two groups can be told apart: all rows are one crowd"
            least = search.limits.clusters[0]
            asked = f", and {least} is the smallest number asked for"
            return f"{crowd}{asked if least > 1 else ''}."
        told = search.told(answer.n_asked)
        words = self._explain_trimming(search) + f"ny two of {chosen} are told apart"
        if told[answer.n_cut] < _ENTIRELY:
            words += f" to {told[answer.n_cut]:.0%} or more"
        if answer.how == "touching":
            empty = search.candidates(answer.n_asked)[answer.n_cut].borders.empty
            return (
                f"{words}; where they meet, rows lie at emptier places than "
                f"{empty:.0%} of the others."
            )
        return f"{words}, {self._explain_more(told, search)}."

    def _explain_more(self, told: dict[int, float], search: Search) -> str:
        """Say what is against more clusters."""
        n_cut, largest = self.answer.n_cut, search.limits.clusters[1]
        after = max((told[more] for more in told if more > n_cut), default=0.0)
        if after <= 0:
            return "and of more, some would be empty"
        share = f"two would be told apart to {after:.0%}"
        if after < MIN_TOLD:
            return f"while of more, {share} only"
        if n_cut == largest:
            return f"and of more, {share}: a larger limit than {largest} may find them"
        return f"while of more, two would be told apart less well, to {after:.0%}"

    def _explain_trimming(self, search: Search) -> str:
        """Say what was left out to see clusters, and begin the subject."""
        if self.answer.n_asked <= self.n_outliers:
            return "A"
        share = self.answer.n_asked / search.n_samples
        return f"Without the {share:.0%} of the rows at the emptiest places, a"

    def _explain_outliers(self, gaps: Gaps) -> str:
        n_outliers = self.n_outliers
        if self.how == "gap":
            width = gaps.widths[self.n_beyond]
            # Where outliers are sure to be there, any gap will do.
            verb = "is" if width > gaps.threshold else "would be"
            rows = _count(self.n_beyond, "strangest row").removeprefix("1 ")
            return (
                f"Below the {rows} is a gap {_times(width)} as wide as expected; "
                f"{gaps.threshold:.3g} {verb} a sign of outliers."
            )
        if self.how == "asked":
            if not n_outliers:
                return "No row may be set aside."
            words = _count(n_outliers, "row")
            return f"{words} set aside, because that was asked for."
        if self.how == "excess":
            verb = "lies" if n_outliers == 1 else "lie"
            return (
                f"{_count(n_outliers, 'row')} more {verb} far out of the clusters than "
                "the tails of these have."
            )
        widest = gaps.widths.max(initial=0)
        if widest <= 0:
            return "There are no gaps between the strangest rows."
        return (
            "No gap between the strangest rows is a sign of outliers: the widest is "
            f"{_times(widest)} as wide as expected, and {gaps.threshold:.3g} would be "
            "a sign."
        )


def _times(width: float) -> str:
    return f"{width:,.0f} times" if width >= 100 else f"{width:.3g} times"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
