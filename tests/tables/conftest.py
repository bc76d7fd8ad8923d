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
