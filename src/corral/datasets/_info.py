"""What is known about a data set."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["dense", "text"]
Layout = Literal["table", "cluto", "decaf"]


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes
    ----------
    name : str
        In the folder it is saved to.
    url : str
        Where it is published.
    sha256 : str or None
        Of its bytes; None where no one has published it. What is read from the file is
        verified in any case, see ``DatasetInfo.sha256_rows``.
    """

    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Table:
    """Where values and classes stand in a text file with a row per line.

    Attributes
    ----------
    features : tuple of int
        Columns with the values, from 0.
    label : int
        Column with the class.
    delimiter : str or None
        None is any white space.
    """

    features: tuple[int, ...]
    label: int
    delimiter: str | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """A data set of the paper: where it comes from and what it should contain.

    Attributes
    ----------
    name : str
        As in Table 1 of the paper.
    title : str
        As its source calls it.
    kind : {"dense", "text"}
        Rows of an array, or of a sparse matrix of term counts.
    n_samples, n_features, n_clusters, n_outliers : int
        As in the published files. Where Table 1 differs, ``notes`` says so.
    cluster_classes : tuple of str
        Classes of the source that are the clusters 0, 1, ..., from the largest. Rows of
        all other classes are outliers. Empty where the classes' sizes decide: then the
        ``n_clusters`` largest are the clusters.
    page : str
        Where the source describes the data.
    licence : str
        As stated there, or "not stated".
    layout : {"table", "cluto", "decaf"}
        How the original files are written.
    originals : tuple of str
        Names of the files that are read, packed or not.
    downloads : tuple of RemoteFile
        What is fetched to have the originals. Empty where no program can fetch them.
    table : Table or None
        The columns, if the layout is "table".
    sha256_rows, sha256_labels : str or None
        Checksums of what is read, the same for every form of the files. None where no
        file was at hand: then the counts are verified alone.
    notes : str
        What a reader should know, above all where the paper differs.
    """

    name: str
    title: str
    kind: Kind
    n_samples: int
    n_features: int
    n_clusters: int
    n_outliers: int
    cluster_classes: tuple[str, ...]
    page: str
    licence: str
    layout: Layout
    originals: tuple[str, ...]
    downloads: tuple[RemoteFile, ...] = ()
    table: Table | None = None
    sha256_rows: str | None = None
    sha256_labels: str | None = None
    notes: str = ""
