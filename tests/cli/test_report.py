from tests.cli.example import make_rows, only_line, run_corral, write_table


def test_report_of_the_rows_of_the_fit(model, data, tmp_path):
    path = tmp_path / "report.html"
    result = run_corral("report", model, data, "--output", path)
    assert result.exit_code == 0, result.output
    assert "150 rows, those of the fit" in result.stdout
    assert f"report    {path}" in result.stdout
    page = path.read_text()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "p127" in page


def test_other_rows_are_judged_anew(model, tmp_path):
    rows = make_rows()[:40]
    new = write_table(tmp_path / "new.csv", rows)
    path = tmp_path / "report.html"
    result = run_corral("report", model, new, "--output", path)
    assert result.exit_code == 0, result.output
    assert "40 rows, judged anew, not of the fit" in result.stdout
    assert "set aside 1 row," in result.stdout
    assert "p7" in path.read_text()


def test_a_report_over_the_data_is_refused(model, data):
    before = data.read_bytes()
    result = run_corral("report", model, data, "--output", data)
    assert result.exit_code == 2
    assert "is the same file as the input" in only_line(result.stderr)
    assert data.read_bytes() == before
