"""Rows stay where they are: only small things travel."""

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from distributed.comm import tcp

from corral import _cut
from corral.dask import COR
from tests.dask.conftest import SETTINGS, draw_rows


@contextmanager
def count_bytes(client):
    """Count the bytes that client, scheduler and workers send each other.

    Yields
    ------
    sent : Counter
        From here, where client and scheduler are, to here, and between workers.
    """
    sent = Counter()
    write, read_frames = tcp.TCP.write, tcp.read_bytes_rw

    async def count_write(self, *args, **kwargs):
        n_bytes = await write(self, *args, **kwargs)
        sent["from here"] += n_bytes
        return n_bytes

    async def count_read(stream, n):
        sent["to here"] += n
        return await read_frames(stream, n)

    before = client.run(count_fetched)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tcp.TCP, "write", count_write)
        patch.setattr(tcp, "read_bytes_rw", count_read)
        yield sent
    after = client.run(count_fetched)
    sent["between workers"] = sum(after[each] - before[each] for each in before)


def count_fetched(dask_worker):
    """Return how many bytes a worker has fetched from others."""
    return sum(each["total"] for each in dask_worker.transfer_incoming_log)


def test_rows_do_not_travel(client, cut_into, tmp_path, monkeypatch):
    # A sample of the rows travels, and some numbers for each block: neither becomes
    # more with more rows. Codes may, a little, if a worker takes over for another.
    monkeypatch.setattr(_cut, "_GATHERED", 2**11)
    n_travelled = []
    # Of the first block, the first look takes a thousand rows.
    for n_rows in (10_000, 40_000):
        np.save(tmp_path / "rows.npy", draw_rows(n_rows, n_features=128))
        cut_into(n_rows // 8)
        model = COR(3, n_outliers=100, max_samples=500, **SETTINGS)
        with count_bytes(client) as sent:
            model.fit(tmp_path / "rows.npy")
        assert model.storage_.n_blocks == 8
        assert min(sent[name] for name in ("to here", "from here")) > 0
        n_travelled.append(sent.total())
    few, many = n_travelled
    assert many - few < 0.2 * 30_000 * 128 * 8
