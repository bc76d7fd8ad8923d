"""Files for the tests of tables."""

import pytest


@pytest.fixture
def put(tmp_path):
    """Return what writes a file and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def little_memory(monkeypatch):
    """Let 28 MiB be free."""
    for module in ("_limits", "_formats", "_parquet", "_unpack"):
        place = f"corral.tables.{module}.find_free_memory"
        monkeypatch.setattr(place, lambda: 28 * 2**20)
