"""``corral demo``: the main job on a small data set with planted outliers."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from corral.cli._files import check_extras, make_folder
from corral.cli._options import OUTPUT, force_option
from corral.cli._outputs import Outputs
from corral.cli._text import fact

if TYPE_CHECKING:
    import numpy as np

_N_CLUSTERS = 5
_N_PLANTED = 40


class _DemoData(NamedTuple):
    X: "np.ndarray"
    planted: "np.ndarray"  # row numbers
    feature_names: list[str]
    story: str


@click.command(
    epilog="""\b
Examples:
  corral demo
  corral demo --output somewhere --seed 1
"""
)
@click.option(
    "--output",
    type=OUTPUT,
    default=Path("demo-output"),
    show_default=True,
    help="Folder for labels.csv and report.html; made if it is not there.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    metavar="N",
    show_default=True,
    help="Seed of the planted rows and of the fit.",
)
@force_option
def demo(output: Path, seed: int, force: bool) -> None:
    """Find clusters and planted outliers in a small data set.

    Makes rows in a few round groups, strews others among them, and finds both without
    being told how many there are.
    """
    check_extras(report=True)
    import numpy as np

    from corral import COR
    from corral.cli._findings import confidence_columns
    from corral.report import summarize, to_html

    make_folder(output)
    labels = "The labels' file"
    report = "The report's file"
    paths = {labels: output / "labels.csv", report: output / "report.html"}
    outputs = Outputs(paths, [], force=force)
    data = _demo_data(seed)
    click.echo(f"data      {data.X.shape[0]:,} rows x {data.X.shape[1]} features")
    click.echo(f"          {data.story}")

    start = time.perf_counter()
    model = COR(random_state=seed).fit(data.X)
    seconds = time.perf_counter() - start

    outliers = np.flatnonzero(model.labels_ == -1)
    n_found = np.isin(outliers, data.planted).sum()
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_clusters_)
    page = to_html(summarize(model, data.X, feature_names=data.feature_names))
    columns = {
        "id": range(len(model.labels_)),
        "label": model.labels_,
        "nearest_label": model.nearest_labels_,
        "outlier_score": model.outlier_scores_,
        **confidence_columns(model),
    }
    outputs.write_labels(columns, option=labels)
    outputs.write_text(report, page)

    click.echo(f"fit       {seconds:.1f} seconds")
    click.echo(f"clusters  {len(sizes)}, with {', '.join(map(str, sizes))} rows")
    click.echo(
        f"set aside {len(outliers)} rows, "
        f"{n_found} of the {_N_PLANTED} planted ones among them"
    )
    click.echo(fact("chosen", model.selection_.reason))
    click.echo(fact("labels", outputs.files[labels]))
    click.echo(fact("report", outputs.files[report]))
    outputs.check_names()


def _demo_data(seed: int) -> _DemoData:
    """Make round groups, and rows strewn over a box that is wider than all of them."""
    import numpy as np
    from sklearn.datasets import make_blobs

    groups, _ = make_blobs(
        2000, n_features=8, centers=_N_CLUSTERS, center_box=(-10, 10), random_state=seed
    )
    rng = np.random.default_rng(seed)
    strewn = rng.uniform(-25, 25, size=(_N_PLANTED, 8))
    order = rng.permutation(len(groups) + _N_PLANTED)
    return _DemoData(
        X=np.concatenate([groups, strewn])[order],
        planted=np.flatnonzero(order >= len(groups)),
        feature_names=[f"x{column}" for column in range(8)],
        story=f"{_N_CLUSTERS} round groups, and {_N_PLANTED} planted outliers",
    )
