"""Put tables and figures into a page, between marks: no number is typed by hand.

Between the lines ``<!-- begin table2 -->`` and ``<!-- end table2 -->`` a page gets what
``results/tables/table2.md`` holds, without its title. Figures are copied to a folder
beside the page that has its name.
"""

import re
import shutil
from pathlib import Path

_BLOCK = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def publish(page: Path, output: Path) -> list[str]:
    """Renew the tables of a page and the figures beside it; return their names."""
    text = page.read_text(encoding="utf-8")
    names = [match.group(2) for match in _BLOCK.finditer(text)]
    if not names:
        raise ValueError(
            f"{page.name} has no place for a table. Write the lines "
            "<!-- begin table2 --> and <!-- end table2 --> where it should be."
        )
    tables = {name: _read_table(name, output) for name in names}
    page.write_text(
        _BLOCK.sub(lambda m: m[1] + tables[m[2]] + m[3], text), encoding="utf-8"
    )
    return names + [_copy(path, page.with_suffix("")) for path in _figures(output)]


def _read_table(name: str, output: Path) -> str:
    path = output / "tables" / f"{name}.md"
    if not path.exists():
        raise ValueError(
            f"{name} has not been made. Make it with: "
            f"python -m benchmarks.paper table {name}"
        )
    # The page has headings of its own.
    _, _, body = path.read_text(encoding="utf-8").partition("\n")
    return f"{body.strip()}\n"


def _figures(output: Path) -> list[Path]:
    return sorted((output / "figures").glob("*.svg"))


def _copy(path: Path, folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    shutil.copyfile(path, folder / path.name)
    return path.name
