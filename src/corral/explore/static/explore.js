// The page: sliders ask for a view, and the newest view is shown. The map is the
// report's; words from the data are written by textContent only.

const MAX_NAMES = 20; // so many clusters, the largest, have their number on the map
const N_POSITIONS = 240; // of the slider of outliers, at most
const RETRY = 60; // milliseconds until a view that was dropped is asked for again

const page = document.querySelector(".corral-explore");
const find = (selector) => page.querySelector(selector);
const SVG = "http://www.w3.org/2000/svg";

async function start() {
  try {
    const opening = await ask("opening");
    const explorer = new Explorer(opening);
    explorer.want(...readAddress(opening));
    watchServer();
  } catch (error) {
    showError(error.message);
  }
}

// Asking the server.

class Problem extends Error {
  constructor(message, status, answer) {
    super(message);
    this.status = status;
    this.answer = answer;
  }
}

async function ask(path, content = undefined) {
  const options = { cache: "no-store", credentials: "omit", redirect: "error" };
  if (content !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(content);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem("corral does not answer. It may have ended; start it again.", 0, {});
  }
  const text = await response.text();
  let answer = {};
  try {
    answer = JSON.parse(text);
  } catch {
    answer = { error: text.trim() };
  }
  if (!response.ok) {
    throw new Problem(answer.error || `corral answered ${response.status}.`, response.status, answer);
  }
  return answer;
}

// The server notices by this line that the page is open, and says on it that it ends.
function watchServer() {
  const line = new EventSource("pages");
  line.addEventListener("end", () => {
    line.close();
    showError("corral has ended. What is shown stays, but nothing can be changed or saved.");
    page.classList.add("has-ended");
    for (const control of page.querySelectorAll(".controls input, .pick, .save button, .save input")) {
      control.disabled = !control.classList.contains("copy");
    }
  });
}

function hasEnded() {
  return page.classList.contains("has-ended");
}

// That corral has ended is the last message.
function showError(message) {
  if (hasEnded()) {
    return;
  }
  const place = find(".controls .error");
  place.textContent = message;
  place.hidden = !message;
}

// Which numbers are wanted, and what is shown.

class Explorer {
  constructor(opening) {
    this.opening = opening;
    this.map = opening.map && new LiveMap(find(".map"), opening);
    this.wanted = null;
    this.shown = null;
    this.isAsking = false;
    this.controls = new Controls(opening, (k, o) => this.want(k, o));
    this.saver = new Saver(opening, this);
    describeTable(opening);
    this.listenToCurve();
    if (!this.map) {
      find(".map").hidden = true;
    }
  }

  want(k, o) {
    if (hasEnded()) {
      return;
    }
    this.wanted = [k, o];
    this.controls.show(k, o);
    this.askForNewest();
  }

  // One request at a time; when it is answered, the newest wish is next.
  async askForNewest() {
    if (this.isAsking) {
      return;
    }
    this.isAsking = true;
    this.controls.setBusy(true);
    while (this.wanted && !hasEnded()) {
      const [k, o] = this.wanted;
      this.wanted = null;
      await this.askFor(k, o);
    }
    this.isAsking = false;
    this.controls.setBusy(false);
  }

  async askFor(k, o) {
    const begin = performance.now();
    try {
      const view = await ask("view", { n_clusters: k, n_outliers: o });
      const answered = performance.now();
      this.show(view);
      view.seconds.answer = (answered - begin) / 1000;
      view.seconds.draw = (performance.now() - answered) / 1000;
      this.controls.say(view);
      showError("");
    } catch (error) {
      if (error.status === 409) {
        // Another page asked; it is our turn again soon, unless there is a newer wish.
        await new Promise((done) => setTimeout(done, RETRY));
        this.wanted = this.wanted || [k, o];
      } else if (!this.wanted && !hasEnded()) {
        this.controls.fail();
        showError(error.message);
      }
    }
  }

  show(view) {
    this.shown = view;
    history.replaceState(null, "", `#${view.n_clusters},${view.n_outliers}`);
    if (this.map) {
      this.map.update(view);
      describeMap(this.opening, view);
    }
    drawCurve(view);
    listClusters(view, this.opening.n_samples);
    listRows(view, this.map);
    showWarnings(view.warnings);
    find(".command").textContent = view.command;
  }

  // A click on the curve sets the cut there.
  listenToCurve() {
    const plot = find(".curve-panel .plot");
    plot.addEventListener("click", (event) => {
      if (this.shown) {
        const box = plot.getBoundingClientRect();
        const share = clamp((event.clientX - box.left) / box.width, 0, 1);
        const rank = Math.exp(share * Math.log(this.opening.n_samples));
        const most = Math.max(this.opening.n_samples - this.controls.clusters - 1, 0);
        this.want(this.controls.clusters, Math.min(Math.floor(rank), most));
      }
    });
  }
}

// Numbers that were shown before the page was loaded again.
function readAddress(opening) {
  const found = /^#(\d{1,9}),(\d{1,9})$/.exec(location.hash);
  return found ? [Number(found[1]), Number(found[2])] : opening.start;
}

// Sliders and boxes.

class Controls {
  constructor(opening, onChange) {
    this.opening = opening;
    this.form = find(".controls");
    this.status = find(".status");
    this.clusters = opening.start[0];
    this.outliers = opening.start[1];
    this.positions = listPositions(opening.max_outliers);
    this.clustersSlider = find("#clusters-slider");
    this.outliersSlider = find("#outliers-slider");
    this.clustersBox = find("#clusters-box");
    this.outliersBox = find("#outliers-box");
    this.clustersSlider.max = opening.max_clusters;
    this.outliersSlider.max = this.positions.length - 1;
    this.clustersBox.max = opening.n_samples;
    // One cluster is left, of two rows.
    this.outliersBox.max = Math.max(opening.n_samples - 2, 0);
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.clustersSlider.addEventListener("input", () => {
      onChange(Number(this.clustersSlider.value), this.outliers);
    });
    this.outliersSlider.addEventListener("input", () => {
      onChange(this.clusters, this.positions[Number(this.outliersSlider.value)]);
    });
    for (const box of [this.clustersBox, this.outliersBox]) {
      box.addEventListener("input", () => {
        if (box.value !== "" && box.validity.valid) {
          onChange(Number(this.clustersBox.value), Number(this.outliersBox.value));
        }
      });
      // What is left half-typed becomes what is shown.
      box.addEventListener("blur", () => this.show(this.clusters, this.outliers));
    }
    this.setUpPick(find(".chosen-pick"), "Chosen", opening.chosen, onChange);
    this.setUpPick(find(".runner-up-pick"), "Runner-up", opening.runner_up, onChange);
    find(".advice .reason").textContent = opening.reason;
  }

  setUpPick(button, name, numbers, onChange) {
    if (numbers) {
      button.hidden = false;
      button.textContent = `${name}: ${count(numbers[0], "cluster")}, ${count(numbers[1], "outlier")}`;
      button.dataset.numbers = numbers.join();
      button.addEventListener("click", () => onChange(...numbers));
    }
  }

  show(clusters, outliers) {
    this.clusters = clusters;
    this.outliers = outliers;
    setValue(this.clustersSlider, clusters);
    setValue(this.outliersSlider, nearest(this.positions, outliers));
    this.clustersSlider.setAttribute("aria-valuetext", count(clusters, "cluster"));
    this.outliersSlider.setAttribute("aria-valuetext", count(outliers, "outlier"));
    // Not while somebody types in it.
    for (const [box, value] of [[this.clustersBox, clusters], [this.outliersBox, outliers]]) {
      if (document.activeElement !== box || !box.validity.valid || Number(box.value) !== value) {
        setValue(box, value);
      }
      box.classList.remove("is-wrong");
    }
    for (const button of page.querySelectorAll(".pick")) {
      button.setAttribute("aria-pressed", String(button.dataset.numbers === [clusters, outliers].join()));
    }
  }

  setBusy(isBusy) {
    this.form.classList.toggle("is-busy", isBusy);
    this.form.setAttribute("aria-busy", String(isBusy));
  }

  say(view) {
    const { fuse, rest } = view.seconds;
    // What was fused before takes no time.
    this.status.textContent = fuse < 0.0005 ? "fused at once" : `fused in ${duration(fuse)}`;
    this.status.title =
      `fusing ${duration(fuse)}, describing ${duration(rest)}, ` +
      `whole answer ${duration(view.seconds.answer)}, drawing ${duration(view.seconds.draw)}`;
    this.status.dataset.seconds = JSON.stringify(view.seconds);
  }

  fail() {
    this.status.textContent = "not possible";
    for (const box of [this.clustersBox, this.outliersBox]) {
      box.classList.add("is-wrong");
    }
  }
}

// Numbers of outliers along the slider: each of the few, and ever fewer of the many.
function listPositions(most) {
  const values = new Set([0]);
  for (let i = 0; i <= N_POSITIONS; i++) {
    values.add(Math.round(Math.expm1((i / N_POSITIONS) * Math.log1p(most))));
  }
  return Array.from(values).sort((one, two) => one - two);
}

function nearest(values, value) {
  let best = 0;
  for (let i = 1; i < values.length; i++) {
    if (Math.abs(values[i] - value) < Math.abs(values[best] - value)) {
      best = i;
    }
  }
  return best;
}

function setValue(input, value) {
  if (input.value !== String(value)) {
    input.value = value;
  }
}

// The map, whose rows change their clusters but not their places.

class LiveMap extends RowMap {
  constructor(section, opening) {
    const nothing = opening.map.rows.map(() => []);
    super(section, {
      ...opening.map,
      labels: opening.map.rows.map(() => 0),
      nearest_labels: [],
      scores: [],
      reasons: nothing,
      names: [],
      is_category: [],
      has_clusters: true,
    });
    this.words = new Map();
    this.nameBox = section.querySelector(".cluster-names");
    section.querySelector(".y-title").textContent = opening.map.axes[1];
    section.querySelector("figcaption").textContent = opening.map.axes[0];
    listenToButtons(section, this);
    listenToKeys(this);
    listenToPointer(this);
  }

  update(view) {
    Object.assign(this.data, {
      labels: view.labels,
      nearest_labels: view.nearest_labels,
      scores: view.scores,
    });
    this.words = new Map(view.rows.map((row) => [row.row, row]));
    this.outliers = range(this.count)
      .filter((i) => view.labels[i] === -1)
      .sort((one, two) => view.scores[two] - view.scores[one]);
    this.names = this.nameClusters(view);
    this.middles = this.findMiddles();
    this.nameBox.replaceChildren(...this.names);
    this.show(this.view);
  }

  nameClusters(view) {
    const drawn = new Set(view.labels);
    return view.clusters
      .filter((cluster) => drawn.has(cluster.label))
      .sort((one, two) => two.size - one.size)
      .slice(0, MAX_NAMES)
      .map((cluster) => {
        const name = element("span", String(cluster.label), "cluster-name");
        name.dataset.label = cluster.label;
        return name;
      });
  }

  describe(i) {
    const lines = super.describe(i);
    const known = this.words.get(this.data.rows[i]);
    for (const words of known ? known.reasons : []) {
      lines.push(element("div", words, "reason"));
    }
    return lines;
  }
}

function describeMap(opening, view) {
  const { rows, variance, is_shifted: isShifted, x, y } = opening.map;
  const parts = [];
  if (rows.length < opening.n_samples) {
    const drawn = view.labels.filter((label) => label === -1).length;
    const whole = drawn === view.n_outliers ? "all outliers" : `${count(drawn, "outlier")} of ${number(view.n_outliers)}`;
    parts.push(`${number(rows.length)} of ${count(opening.n_samples, "row")} are drawn, with ${whole}.`);
  }
  if (variance !== null) {
    parts.push(`The map keeps ${percent(variance)} of the variance, so that an outlier may seem to lie within a cluster.`);
  }
  if (isShifted) {
    parts.push("Many rows lie on the very same place; they are drawn side by side.");
  }
  const outside = range(rows.length).filter((i) => x[i] < 0 || x[i] > 1 || y[i] < 0 || y[i] > 1).length;
  if (outside) {
    parts.push(`${count(outside, "row")} further out ${outside === 1 ? "is" : "are"} drawn at the edge.`);
  }
  find(".map-facts").textContent = parts.join(" ");
}

// The cost curve; positions come from the server, in percent.

function drawCurve(view) {
  const { points, x_ticks: xTicks, y_ticks: yTicks, cut } = view.chart;
  const panel = find(".curve-panel");
  panel.querySelector(".curve").setAttribute("points", points.map((point) => point.join()).join(" "));
  panel.querySelector(".grid-lines").replaceChildren(
    ...yTicks.map(([position]) => {
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("class", "grid");
      line.setAttribute("d", `M0 ${position.toFixed(2)}H100`);
      return line;
    }),
  );
  const ticks = yTicks.map(([position, text]) => tick("y-tick", "top", position, text));
  ticks.push(...xTicks.map(([position, text]) => tick("x-tick", "left", position, text)));
  panel.querySelector(".ticks").replaceChildren(...ticks);
  panel.querySelector(".cut-area").setAttribute("width", cut === null ? 0 : cut.toFixed(2));
  panel.querySelector(".cut").setAttribute("d", cut === null ? "" : `M${cut.toFixed(2)} 0V100`);
  const text = panel.querySelector(".cut-text");
  text.hidden = cut === null;
  text.textContent = `${count(view.n_outliers, "row")} set aside`;
  text.style.left = `${cut}%`;
  text.classList.toggle("to-the-left", cut > 55);
  const above = view.n_at_cut ? "above or at" : "above";
  find(".curve-facts").textContent =
    cut === null
      ? "No rows are set aside. Click the curve to cut it there."
      : `Rows ${above} a score of ${figure(view.cut)} are set aside. Click the curve to cut it elsewhere.`;
}

function tick(className, side, position, text) {
  const made = element("span", text, className);
  made.style[side] = `${position}%`;
  return made;
}

// Tables.

function listClusters(view, total) {
  const panel = find(".clusters-panel");
  const sizes = view.clusters.map((cluster) => cluster.size);
  const longest = Math.max(view.n_outliers, ...sizes, 1);
  panel.classList.toggle(
    "without-stability",
    view.clusters.every((cluster) => cluster.stability === null),
  );
  const rows = view.clusters
    .slice()
    .sort((one, two) => two.size - one.size)
    .map((cluster) => {
      const name = element("th", String(cluster.label));
      name.prepend(element("span", "", "dot"));
      return clusterRow(`colour-${cluster.label % N_COLOURS}`, name, cluster.size, cluster.stability);
    });
  const name = element("th", "outliers");
  name.prepend(element("span", "", "square"));
  rows.push(clusterRow("aside", name, view.n_outliers, null));
  panel.querySelector("tbody").replaceChildren(...rows);

  function clusterRow(className, heading, size, stability) {
    const row = element("tr", "", className);
    heading.scope = "row";
    const bars = element("td", "", "bars");
    const bar = element("div", "", "bar");
    bar.style.width = `${(100 * size) / longest}%`;
    bars.append(bar);
    row.append(
      heading,
      element("td", number(size), "number"),
      element("td", percent(size / total), "number"),
      element("td", stability === null ? "\u2013" : stability.toFixed(2), "number stability"),
      bars,
    );
    return row;
  }
}

function listRows(view, map) {
  const section = find(".strangest");
  const n_listed = view.rows.filter((row) => row.is_outlier).length;
  const parts = [];
  if (view.n_outliers === 0) {
    parts.push("No rows are set aside.");
  } else if (n_listed < view.n_outliers) {
    parts.push(`The strangest ${n_listed} of ${count(view.n_outliers, "outlier")}.`);
  }
  if (view.rows.length > n_listed) {
    parts.push("The rows in grey would be next.");
  }
  parts.push("A spread is the standard deviation of a column within the nearest cluster.");
  if (view.doubts) {
    parts.push(view.doubts);
  }
  find(".rows-facts").textContent = parts.join(" ");
  section.classList.toggle(
    "without-confidence",
    view.rows.every((row) => row.confidence === null),
  );
  section.querySelector("tbody").replaceChildren(...view.rows.map((row) => rowOfTable(row, map)));
}

function rowOfTable(strange, map) {
  const row = element("tr", "", strange.is_outlier ? "aside" : "next");
  row.dataset.row = strange.row;
  const heading = element("th", "");
  heading.scope = "row";
  heading.append(idOf(strange, map));
  const reasons = element("td", "", "wide");
  if (strange.reasons.length) {
    const list = element("ul", "", "reasons");
    list.append(...strange.reasons.map((words) => element("li", words, "cell")));
    reasons.append(list);
  } else {
    reasons.append(element("span", "no column by itself", "usual"));
  }
  row.append(
    heading,
    element("td", figure(strange.score), "number"),
    element("td", String(strange.nearest_label), "number"),
    element("td", strange.confidence === null ? "" : percent(strange.confidence), "number confidence"),
    reasons,
  );
  return row;
}

// The id of a row; if the row is on the map, a click shows it there.
function idOf(strange, map) {
  const place = map ? map.placeOfRow.get(strange.row) : undefined;
  const className = `cell${strange.id.length <= 24 ? " short" : ""}`;
  if (place === undefined) {
    return element("span", strange.id, className);
  }
  const button = element("button", strange.id, `${className} find`);
  button.type = "button";
  button.title = "Show on the map";
  button.addEventListener("click", () => {
    map.plot.scrollIntoView({ block: "center" });
    map.plot.focus({ preventScroll: true });
    map.visit(place);
  });
  return button;
}

function showWarnings(warnings) {
  const list = find(".warnings");
  list.hidden = !warnings.length;
  list.replaceChildren(...warnings.map((words) => element("li", words)));
}

function describeTable(opening) {
  document.title = `${opening.source} \u2013 corral explore`;
  find(".source").textContent = `in ${opening.source}`;
  const parts = [`${count(opening.n_samples, "row")}, ${count(opening.n_features, "column")} used`];
  const dropped = Object.entries(opening.dropped);
  if (dropped.length) {
    const listed = dropped.slice(0, 5).map(([name, why]) => `${name} (${why})`);
    const more = dropped.length > 5 ? ` and ${dropped.length - 5} more` : "";
    parts.push(`not used: ${listed.join(", ")}${more}`);
  }
  find(".table-facts").textContent = `${parts.join("; ")}.`;
  find(".folder").textContent = opening.folder;
}

// Saving.

class Saver {
  constructor(opening, explorer) {
    this.explorer = explorer;
    this.name = find("#save-name");
    this.name.value = opening.name;
    this.button = find(".save .main");
    this.confirm = find(".confirm");
    this.error = find(".save-error");
    this.saved = find(".saved");
    find(".save-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.save(false);
    });
    find(".replace").addEventListener("click", () => this.save(true));
    find(".cancel").addEventListener("click", () => {
      this.confirm.hidden = true;
      this.button.focus();
    });
    find(".copy").addEventListener("click", () => this.copy());
  }

  async save(replace) {
    const view = this.explorer.shown;
    if (!view || hasEnded()) {
      return;
    }
    this.confirm.hidden = true;
    this.error.hidden = true;
    this.saved.hidden = true;
    this.button.disabled = true;
    this.button.textContent = "Saving\u2026";
    try {
      const answer = await ask("save", {
        n_clusters: view.n_clusters,
        n_outliers: view.n_outliers,
        name: this.name.value.trim(),
        replace,
      });
      this.tell(answer, view);
    } catch (error) {
      if (error.answer && error.answer.exist) {
        this.question(error.answer.exist);
      } else {
        this.error.textContent = error.message;
        this.error.hidden = false;
      }
    }
    this.button.disabled = hasEnded();
    this.button.textContent = "Save labels, report and command";
  }

  question(names) {
    const are = names.length === 1 ? "is" : "are";
    this.confirm.querySelector("p").textContent = `${names.join(", ")} ${are} there already. Replace ${names.length === 1 ? "it" : "them"}?`;
    this.confirm.hidden = false;
    find(".replace").focus();
  }

  tell(answer, view) {
    const list = document.createElement("ul");
    list.append(...answer.files.map((path) => element("li", path, "cell")));
    const command = document.createElement("pre");
    command.append(element("code", answer.command));
    this.saved.replaceChildren(
      element("p", `Saved ${count(view.n_clusters, "cluster")} and ${count(view.n_outliers, "outlier")}:`),
      list,
      element("p", "This command makes them again:"),
      command,
    );
    this.saved.hidden = false;
  }

  async copy() {
    const button = find(".copy");
    try {
      await navigator.clipboard.writeText(find(".command").textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(find(".command"));
      button.textContent = "Selected; press Ctrl-C";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  }
}

// Numbers as words.

function number(value) {
  return value.toLocaleString("en");
}

function count(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function percent(share) {
  if (share > 0 && share < 0.001) {
    return "under 0.1%";
  }
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

function figure(value) {
  const size = Math.abs(value);
  return size >= 1e3 && size < 1e12 ? number(Math.round(value)) : String(Number(value.toPrecision(4)));
}

function duration(seconds) {
  return seconds < 0.9995 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toFixed(1)} s`;
}

start();
