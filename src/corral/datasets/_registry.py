"""The 14 data sets of the paper's Table 1."""

from corral.datasets._info import DatasetInfo, RemoteFile, Table

_UCI = "https://archive.ics.uci.edu"
_CC_BY = "CC BY 4.0"


def _uci(
    number: int, slug: str, name: str, columns: tuple[int, int], delimiter=None, **known
) -> DatasetInfo:
    """Return a data set of UCI; ``columns`` has the first value's and the class's."""
    first, label = columns
    return DatasetInfo(
        name=name,
        kind="dense",
        page=f"{_UCI}/dataset/{number}/{slug}",
        licence=_CC_BY,
        layout="table",
        downloads=(
            RemoteFile(f"{slug}.zip", f"{_UCI}/static/public/{number}/{slug}.zip"),
        ),
        table=Table(tuple(range(first, label)), label, delimiter),
        **known,
    )


def _cluto(name: str, **known) -> DatasetInfo:
    """Return a text collection that comes with CLUTO."""
    return DatasetInfo(
        name=name,
        title=f"CLUTO text collection {name}",
        kind="text",
        page="http://glaros.dtc.umn.edu/gkhome/cluto/cluto/download",
        licence="not stated",
        layout="cluto",
        originals=(f"{name}.mat", f"{name}.mat.rclass"),
        downloads=(
            RemoteFile(
                "datasets.tar.gz",
                "http://glaros.dtc.umn.edu/gkhome/fetch/sw/cluto/datasets.tar.gz",
            ),
        ),
        **known,
    )


def _vlcs(name: str, part: str, **known) -> DatasetInfo:
    """Return the DeCAF features of a part of VLCS."""
    return DatasetInfo(
        name=name,
        title=f"VLCS, {part}, DeCAF features",
        kind="dense",
        n_features=4096,
        cluster_classes=(),
        page="https://github.com/jindongwang/transferlearning/blob/master/data/dataset.md",
        licence="not stated",
        layout="decaf",
        originals=(f"{part}.mat",),
        notes=(
            "The page links to folders of file-sharing services, from which a program "
            "cannot download. No file was at hand: counts are verified, but no "
            "checksum is known. The classes are bird, car, chair, dog and person, as "
            "numbers."
        ),
        **known,
    )


_ALL = (
    _uci(
        39,
        "ecoli",
        "ecoli",
        (1, 8),
        title="Ecoli",
        n_samples=336,
        n_features=7,
        n_clusters=5,
        n_outliers=9,
        cluster_classes=("cp", "im", "pp", "imU", "om"),
        originals=("ecoli.data",),
        sha256_rows="0f39250a304823da8511b6462408651fa8a6ef8beb642b8534dbde43655a3f72",
        sha256_labels="b41b604c4172fbeca790365d2f89448814fc67a89fe655ee006bb98e43470637",
    ),
    _uci(
        110,
        "yeast",
        "yeast",
        (1, 9),
        title="Yeast",
        n_samples=1484,
        n_features=8,
        n_clusters=4,
        n_outliers=185,
        cluster_classes=("CYT", "NUC", "MIT", "ME3"),
        originals=("yeast.data",),
        sha256_rows="5fe8d4167263144018432f9cf82efe368ae684f178b1083f352f211dba9240cf",
        sha256_labels="768500fa1cb4353b26e9db28b1a94e6e7224b6ae2e2c097ac19859efefbea6eb",
    ),
    _vlcs("caltech", "Caltech101", n_samples=1415, n_clusters=4, n_outliers=67),
    _vlcs("sun09", "SUN09", n_samples=3282, n_clusters=3, n_outliers=50),
    _cluto(
        "fbis",
        n_samples=2463,
        n_features=2000,
        n_clusters=10,
        n_outliers=332,
        cluster_classes=(
            "142",
            "111",
            "189",
            "202",
            "118",
            "187",
            "12",
            "221",
            "108",
            "100",
        ),
        sha256_rows="4f9f2fbc72fd4a97e42bcb203a5a95d750ac184bbc1bde2ab0c1c3917938f62c",
        sha256_labels="816bf0b7fe2f8052ff5ec06a1fd821cc684c230657720e5d3653e52a918413e8",
    ),
    _cluto(
        "k1b",
        n_samples=2340,
        n_features=21839,
        n_clusters=5,
        n_outliers=60,
        cluster_classes=("entertainment", "health", "business", "sports", "politics"),
        sha256_rows="26a570b9394fb3b18478e76a4c3b836262610244e7ba4b56e7f86cbdbb96c019",
        sha256_labels="e937e227fbcb1f4f3b8e43f40894233fe7f8f55c0469d542fc594c501c1014a8",
    ),
    _cluto(
        "re0",
        n_samples=1504,
        n_features=2886,
        n_clusters=5,
        n_outliers=218,
        cluster_classes=("money", "trade", "interest", "gnp", "cpi"),
        sha256_rows="fcbc0127fd912252bb5e3d904c58a0863a7ab3e787574851b4f47d6f66a60232",
        sha256_labels="c22553a0e8bdf2af994f1c721bd3dc62a97187f39b8836693ecccf70647be9da",
    ),
    _cluto(
        "re1",
        n_samples=1657,
        n_features=3758,
        n_clusters=6,
        n_outliers=527,
        cluster_classes=("grain", "crude", "ship", "sugar", "coffee", "gold"),
        sha256_rows="dac435d68c82947e4d955dedf8e8240a394bcee82a7b24d9a8dc13c85555ec02",
        sha256_labels="db2365910d2b7d418d355f5ee0cb9509295f109e9bffc24e061b432ce47f8e89",
    ),
    _cluto(
        "tr11",
        n_samples=414,
        n_features=6429,
        n_clusters=4,
        n_outliers=87,
        cluster_classes=("12", "11", "3", "4"),
        sha256_rows="1eb23a4b886719cf7246d415bd969ea2e46ecdb3430f03eb4a17817fc655fafb",
        sha256_labels="d0ed3ee9c88963c988a7dc26a82897785a61f83f6ed83f4823bd6f805d0ba86f",
        notes="Table 1 gives 6129 features, which looks like a misprint of 6429.",
    ),
    _cluto(
        "tr23",
        n_samples=204,
        n_features=5832,
        n_clusters=3,
        n_outliers=32,
        cluster_classes=("273", "274", "271"),
        sha256_rows="184a46f0c65a30596de108837e9188dd8667997a8d91dd42a7d21a7837c02005",
        sha256_labels="09ee31ce26ee0325893f56d59586ef5b9e03a6b7e09c5ede56b4e2e6342b2688",
    ),
    _cluto(
        "wap",
        n_samples=1560,
        n_features=8460,
        n_clusters=10,
        n_outliers=251,
        cluster_classes=(
            "Health",
            "Film",
            "People",
            "Television",
            "Sports",
            "Review",
            "Music",
            "Business",
            "Politics",
            "Culture",
        ),
        sha256_rows="3dcd52de1b8a0ae718a9010874a34edf22cfe6be2d3d51fd49e36492cd9007bb",
        sha256_labels="e91d8a0102720fe4bf9c132604d55d695ea96e16250e25917c9db5bcf318e1e7",
    ),
    _uci(
        42,
        "glass+identification",
        "glass",
        (1, 10),
        delimiter=",",
        title="Glass Identification",
        n_samples=214,
        n_features=9,
        n_clusters=3,
        n_outliers=39,
        cluster_classes=("2", "1", "7"),
        originals=("glass.data",),
        sha256_rows="b316ba58b008d37860f344626b8615742cbb268fd23686caceec7b4234acf91e",
        sha256_labels="92210df56e2562a92184ea616128500a67d6eeddaea2afba37372d65c7188d7b",
    ),
    _uci(
        148,
        "statlog+shuttle",
        "shuttle",
        (0, 9),
        title="Statlog (Shuttle)",
        n_samples=58000,
        n_features=9,
        n_clusters=3,
        n_outliers=244,
        cluster_classes=("1", "4", "5"),
        originals=("shuttle.trn", "shuttle.tst"),
        sha256_rows="b63cc884e01ba8476562e81cbd95db0031d72196f0b6d0933e7135ba96838e9b",
        sha256_labels="6f7574b2be589a427d19459b7c31b0b529a818446b677403cbea9b70a79b09be",
        notes="The 43500 rows of the training file come first, then the test file.",
    ),
    DatasetInfo(
        name="kddcup",
        title="KDD Cup 1999, 10 percent",
        kind="dense",
        n_samples=494021,
        n_features=38,
        n_clusters=3,
        n_outliers=8752,
        cluster_classes=("smurf", "neptune", "normal"),
        page=f"{_UCI}/dataset/130/kdd+cup+1999+data",
        licence=_CC_BY,
        layout="table",
        originals=("kddcup.data_10_percent",),
        # scikit-learn's copy of the file, with the checksum that it publishes.
        downloads=(
            RemoteFile(
                "kddcup.data_10_percent.gz",
                "https://ndownloader.figshare.com/files/5976042",
                "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
            ),
        ),
        # Columns 1 to 3 are symbols: protocol, service and flag.
        table=Table((0, *range(4, 41)), 41, ","),
        sha256_rows="ff436f90ad5da78a44a15a5eed9e9c3d6f08edbc4d7c05fad660ee0e5d2f5e24",
        sha256_labels="15696f983ea5266272e736e5a1ee3017286815f81845e0cdea96201771418530",
        notes=(
            "Table 1 gives 54499 outliers, which no union of classes of this file has; "
            "8752 rows are outside its three large classes, and 45747 more such rows "
            "are in the full set of KDD Cup 1999."
        ),
    ),
)

_BY_NAME = {info.name: info for info in _ALL}


def list_datasets() -> list[str]:
    """Return the names of the data sets, in the order of the paper's Table 1.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from corral.datasets import list_datasets
    >>> list_datasets()[:4]
    ['ecoli', 'yeast', 'caltech', 'sun09']
    """
    return list(_BY_NAME)


def describe_dataset(name: str) -> DatasetInfo:
    """Return what is known about a data set.

    Parameters
    ----------
    name : str
        One of those of ``list_datasets``.

    Returns
    -------
    info : DatasetInfo

    Examples
    --------
    >>> from corral.datasets import describe_dataset
    >>> info = describe_dataset("glass")
    >>> info.n_samples, info.n_clusters, info.n_outliers, info.licence
    (214, 3, 39, 'CC BY 4.0')
    """
    if name not in _BY_NAME:
        raise ValueError(
            f"name={name!r} is not a known data set. Choose one of "
            f"{', '.join(_BY_NAME)}."
        )
    return _BY_NAME[name]
