"""Archives that are damaged, encrypted or made to fill the memory are refused."""

import gzip
import itertools
import re
import tarfile
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from corral.datasets import _folder, describe_dataset, load_dataset
from corral.datasets._folder import find_originals
from tests.datasets.originals import compress_lzw, tar_bytes, zip_bytes

TEXT = b"0.25,0.5,1\n" * 1000
PACKINGS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
MATRIX = {"datasets/re0.mat": b"matrix", "datasets/re0.mat.rclass": b"classes"}


def place(name):
    """Return the archive's name, and the name of an original in it."""
    info = describe_dataset(name)
    return info.downloads[0].name, info.originals[0]


def read(name, folder, archive):
    (folder / place(name)[0]).write_bytes(archive)
    return [each.read() for each in find_originals(describe_dataset(name), folder)]


def refuse(name, folder, archive, words):
    """Load a data set, which has to say which file is wrong, why, and what to do."""
    path = folder / place(name)[0]
    path.write_bytes(archive)
    with pytest.raises(ValueError, match=words) as caught:
        load_dataset(name, data_dir=folder)
    told = f"'{path}' cannot be read as '{name}': it"
    assert str(caught.value).replace(f"{path}' and '{path}", str(path)).startswith(told)
    assert re.search(r"\. Get the original from http\S+\.$", str(caught.value))


def peak_of(name, folder, archive, words):
    """Return the most memory that is taken until an archive is refused."""
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        refuse(name, folder, archive, words)
        assert time.perf_counter() - begin < 20
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Zip ----------------------------------------------------------------------------------


def damage(archive, place, n_bytes=6):
    """Return an archive with some bytes turned around."""
    wrong = bytearray(archive)
    wrong[place : place + n_bytes] = bytes(
        255 - each for each in wrong[place : place + n_bytes]
    )
    return bytes(wrong)


def set_bytes(archive, offset, value):
    """Return a zip file with a byte of its member's two headers changed."""
    wrong = bytearray(archive)
    wrong[archive.index(b"PK\3\4") + offset] = value
    wrong[archive.index(b"PK\1\2") + offset + 2] = value
    return bytes(wrong)


@pytest.mark.parametrize("packing", ["stored", "deflate"])
def test_sound_zip(packing, tmp_path):
    archive = zip_bytes({"a/ecoli.data": TEXT}, PACKINGS[packing])
    assert read("ecoli", tmp_path, archive) == [TEXT]


def test_damaged_zip_is_named(tmp_path):
    archive = zip_bytes({"ecoli.data": TEXT})
    start = archive.index(b"ecoli.data") + len("ecoli.data")
    for offset in (0, 5, 15, 25, 35):
        wrong = damage(archive, start + offset)
        refuse("ecoli", tmp_path, wrong, "it cannot be unpacked: ")
    refuse("ecoli", tmp_path, archive[:-30], "it cannot be unpacked: File is not a zip")


def test_zip_whose_member_begins_before_it_is_named(tmp_path):
    # The system refuses to go there, which is damage and no error of the system.
    archive = bytearray(zip_bytes({"ecoli.data": TEXT}))
    end = archive.index(b"PK\5\6")
    archive[end + 16 : end + 20] = (10**6).to_bytes(4, "little")
    refuse("ecoli", tmp_path, bytes(archive), "it cannot be unpacked: ")


def test_encrypted_zip_is_named(tmp_path):
    archive = set_bytes(zip_bytes({"ecoli.data": TEXT}), 6, 1)
    words = r"its file ecoli.data is encrypted\. Get the original from https://"
    refuse("ecoli", tmp_path, archive, words)


@pytest.mark.parametrize("packing", ["bzip2", "lzma"])
@pytest.mark.parametrize("offset", [0, 5, 15, 25, 35])
def test_zip_packed_otherwise_is_named(packing, offset, tmp_path):
    # Damage to it had errors of its own, which did not name the file.
    archive = zip_bytes({"ecoli.data": TEXT}, PACKINGS[packing])
    start = archive.index(b"ecoli.data") + len("ecoli.data") + offset
    words = (
        rf"no source uses \(number {PACKINGS[packing]}\), and only deflate is read\."
    )
    for data in (archive, damage(archive, start)):
        refuse("ecoli", tmp_path, data, words)


def test_zip_of_an_unknown_packing_is_named(tmp_path):
    archive = set_bytes(zip_bytes({"ecoli.data": TEXT}), 8, 99)
    refuse("ecoli", tmp_path, archive, r"its file ecoli.data is .* \(number 99\)")


@pytest.mark.parametrize("packing", ["deflate", "bzip2", "lzma"])
def test_bomb_in_a_zip(packing, tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_MAX_BYTES", 10**6)
    archive = zip_bytes({"ecoli.data": bytes(2**26)}, PACKINGS[packing])
    words = (
        "holds more than 1,000,000 bytes" if packing == "deflate" else "only deflate"
    )
    assert peak_of("ecoli", tmp_path, archive, words) < 4e6


# Tar ----------------------------------------------------------------------------------


def header(name="x", kind=tarfile.REGTYPE, size=0):
    """Return the 512 bytes before a member, whatever size they tell of."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("n_letters", [1, 99, 150, 3000])
def test_sound_tar(form, n_letters, tmp_path):
    # Long paths have headers of their own, which differ between forms.
    folder = "d" * n_letters
    files = {f"{folder}/{n}.mat": bytes(n) for n in range(700)}
    files |= {f"{folder}/{name}": content for name, content in MATRIX.items()}
    archive = tar_bytes(dict(itertools.islice(files.items(), 600, None)), format=form)
    assert read("re0", tmp_path, archive) == [b"matrix", b"classes"]


def test_packed_file_in_a_tar(tmp_path):
    files = {"re0.mat.gz": gzip.compress(b"matrix")}
    files |= {"re0.mat.rclass.Z": compress_lzw(b"classes")}
    assert read("re0", tmp_path, tar_bytes(files)) == [b"matrix", b"classes"]


@pytest.mark.parametrize("mode", ["w", "w:bz2", "w:xz"])
def test_tar_packed_otherwise_than_named_is_refused(mode, tmp_path):
    words = r"it cannot be unpacked: Not a gzipped file"
    refuse("re0", tmp_path, tar_bytes(MATRIX, mode), words)
    # That of LZMA had an error of its own where it is damaged.
    wrong = damage(tar_bytes({"re0.mat": TEXT}, mode), 60)
    refuse("re0", tmp_path, wrong, words)


def test_damaged_tar_is_named(tmp_path):
    noise = np.random.default_rng(0).bytes(60_000)
    archive = tar_bytes({"re0.mat": noise})
    # The first file may still be read, but nothing that stands behind the damage.
    words = "it cannot be unpacked: |it has no file re0.mat.rclass"
    refuse("re0", tmp_path, damage(archive, 30_000), words)
    refuse("re0", tmp_path, archive[:30_000], "it cannot be unpacked: ")
    refuse("re0", tmp_path, archive[:100], "it cannot be unpacked: ")
    plain = gzip.decompress(archive)
    cut = gzip.compress(plain[:30_000])
    refuse("re0", tmp_path, cut, r"it is cut off in the file re0.mat")
    skipped = gzip.compress(header("other", size=60_000) + noise[:30_000])
    refuse("re0", tmp_path, skipped, "it cannot be unpacked: unexpected end of data")
    refuse("re0", tmp_path, gzip.compress(b""), "it cannot be unpacked: empty file")
    refuse("re0", tmp_path, gzip.compress(noise), "it cannot be unpacked: ")


KINDS = [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME]


@pytest.mark.parametrize("kind", KINDS)
def test_header_that_is_a_bomb(kind, tmp_path):
    # tarfile reads such a header as a whole.
    size = 2**26
    archive = gzip.compress(header("x", kind, size) + bytes(size + 1024), 1)
    words = (
        "it has a header of 67,108,864 bytes, and 67,109,376 bytes of headers so far"
    )
    assert peak_of("re0", tmp_path, archive, words) < 1e6


def test_many_headers_are_a_bomb_too(tmp_path):
    # Each is short enough; what is said of all members, tarfile keeps with each.
    notes = b"".join(b"11 k%04d=v\n" % n for n in range(700))
    said = header("x", tarfile.XGLTYPE, len(notes)) + notes + bytes(-len(notes) % 512)
    archive = gzip.compress(said * 10 + header() * 4000)
    words = "it has a header of 512 bytes, and 1,04[89],... bytes of headers so far"
    assert peak_of("re0", tmp_path, archive, words) < 4e6
    archive = gzip.compress(said * 600)
    assert peak_of("re0", tmp_path, archive, "headers so far|recursion") < 20e6


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, *KINDS])
@pytest.mark.parametrize("size", [-1, -512, -1024, -(2**40)])
@pytest.mark.parametrize("name", ["other", "re0.mat"])
def test_sizes_below_zero_lead_nowhere(name, size, kind, tmp_path):
    # Members that end before they begin could be read forever, and of a negative
    # number of bytes, all that follow would be read.
    archive = gzip.compress(header(name, kind, size) + bytes(2**24))
    assert peak_of("re0", tmp_path, archive, "cannot be read as 're0': it ") < 1e6


def test_size_beyond_all_bytes(tmp_path):
    for name in ("other", "re0.mat"):
        archive = gzip.compress(header(name, size=2**60) + bytes(2**20))
        words = "it holds more than 1,073,741,824 bytes, which no original does"
        assert peak_of("re0", tmp_path, archive, words) < 1e6


def test_bomb_in_a_tar(tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_MAX_BYTES", 10**6)
    archive = gzip.compress(header("re0.mat", size=2**24) + bytes(2**24))
    assert peak_of("re0", tmp_path, archive, "more than 1,000,000 bytes") < 1e6
    inner = gzip.compress(bytes(2**24))
    archive = tar_bytes({"re0.mat.gz": inner})
    assert peak_of("re0", tmp_path, archive, "more than 1,000,000 bytes") < 5e6


def test_sparse_member_is_no_original(tmp_path):
    # Its bytes are not those between its header and the next one.
    archive = gzip.compress(
        header("re0.mat", tarfile.GNUTYPE_SPARSE, 512) + bytes(9216)
    )
    refuse("re0", tmp_path, archive, "it has no file re0.mat")


# Both ---------------------------------------------------------------------------------


def test_errors_of_the_system_stay_what_they_are(tmp_path, monkeypatch):
    # A file that may not be read is not damaged.
    (tmp_path / "ecoli.zip").write_bytes(b"")

    def deny(*_):
        raise PermissionError(13, "Permission denied", "ecoli.zip")

    monkeypatch.setattr(zipfile, "ZipFile", deny)
    with pytest.raises(PermissionError):
        load_dataset("ecoli", data_dir=tmp_path)


def test_long_messages_are_cut(tmp_path):
    # NumPy tells of the whole cell that is no number.
    (tmp_path / "ecoli.data").write_bytes(b"x " + b"a" * 10_000 + b" 1" * 6 + b" cp\n")
    with pytest.raises(ValueError, match="cannot be read as 'ecoli'") as caught:
        load_dataset("ecoli", data_dir=tmp_path)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["ecoli", "re0"])
def test_archives_damaged_at_random(name, seed, tmp_path):
    rng = np.random.default_rng(seed)
    original = place(name)[1]
    if name == "re0":
        sound = [tar_bytes({original: TEXT, f"{original}.rclass": b"a\n"})]
    else:
        sound = [zip_bytes({original: TEXT}, each) for each in PACKINGS.values()]
    for _ in range(200):
        archive = bytearray(sound[rng.integers(len(sound))])
        for _ in range(rng.integers(1, 4)):
            archive[rng.integers(len(archive))] = rng.integers(256)
        path = tmp_path / place(name)[0]
        path.write_bytes(archive)
        with pytest.raises(ValueError, match=re.escape(f"'{path}'")) as caught:
            load_dataset(name, data_dir=tmp_path)
        assert re.search(r" [Gg]et the original from http\S+\.$", str(caught.value))
