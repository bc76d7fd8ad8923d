// The table of the strangest rows: a click on a heading sorts, words in the box search.
// Without this script the table is complete, in the order of the scores.

function setUpTable(section) {
  const table = section.querySelector("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const search = section.querySelector("input");
  const found = section.querySelector(".found");

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    const all = `${rows.length} row${rows.length === 1 ? "" : "s"}`;
    found.textContent = count === rows.length ? all : `${count} of ${all}`;
  }

  search.addEventListener("input", filter);
  section.querySelector(".tools").hidden = false;
  for (const heading of table.tHead.rows[0].cells) {
    if (!heading.classList.contains("wide")) {
      makeSortable(heading, table.tHead, rows, body);
    }
  }
}

function makeSortable(heading, head, rows, body) {
  const column = heading.cellIndex;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = heading.textContent;
  heading.replaceChildren(button);
  button.addEventListener("click", () => {
    // Scores are of most use from high to low, and so are other numbers.
    const wasDown = heading.getAttribute("aria-sort") === "descending";
    const isUp = wasDown || (!heading.hasAttribute("aria-sort") && column === 0);
    for (const other of head.rows[0].cells) {
      other.removeAttribute("aria-sort");
    }
    heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    const sorted = rows.slice().sort((one, two) => {
      const order = compareCells(one.cells[column], two.cells[column]);
      return isUp ? order : -order;
    });
    body.append(...sorted);
  });
}

// Ids by their words, so that "row 9" comes before "row 10"; numbers by their size.
const wordOrder = new Intl.Collator(undefined, { numeric: true });

function compareCells(one, two) {
  if (one.dataset.value !== undefined && one.tagName === "TD") {
    return Number(one.dataset.value) - Number(two.dataset.value);
  }
  return wordOrder.compare(one.textContent, two.textContent);
}
