// Several reports may stand on one page, so each sets up only what is within itself.

const report = document.currentScript.closest(".corral-report");
const mapSection = report.querySelector(".map");
const tableSection = report.querySelector(".strangest");
if (tableSection) {
  setUpTable(tableSection);
}
if (mapSection) {
  const data = JSON.parse(mapSection.querySelector(".map-data").textContent);
  const map = setUpMap(mapSection, data);
  if (tableSection) {
    linkRows(tableSection, map);
  }
}

// A click on the id of a row in the table shows it on the map.
function linkRows(section, map) {
  for (const row of section.querySelectorAll("tr[data-row]")) {
    const place = map.placeOfRow.get(Number(row.dataset.row));
    if (place === undefined) {
      continue;
    }
    const cell = row.cells[0];
    const id = cell.firstElementChild;
    const button = element("button", id.textContent, `${id.className} find`);
    button.type = "button";
    button.title = "Show on the map";
    button.addEventListener("click", () => {
      map.plot.scrollIntoView({ block: "center" });
      map.plot.focus({ preventScroll: true });
      map.visit(place);
    });
    cell.replaceChildren(button);
  }
}
