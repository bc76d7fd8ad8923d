"""The page names rows as the file does."""

from types import SimpleNamespace

from corral.cli import _explore
from tests.cli.example import make_rows, run_corral, write_table


def test_explore_names_rows_as_the_file_does(tmp_path, monkeypatch):
    names = [f"98765432109876543{i:03d}" for i in range(150)]
    pairs = zip(make_rows(), names, strict=True)
    data = write_table(tmp_path / "t.csv", [{**row, "name": n} for row, n in pairs])
    served = SimpleNamespace(session=None)

    def serve(ctx, session, writer, opening, taken, browser):
        served.session = session
        taken.close()

    monkeypatch.setattr(_explore, "_serve", serve)
    words = ("--id-column", "name", "--n-partitions", 20, "--output", tmp_path)
    result = run_corral("explore", data, *words, "--no-browser")
    assert result.exit_code == 0, result.output
    session = served.session
    assert session.model.encoder_.ids(session.table) == names
