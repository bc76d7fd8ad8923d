// The map of the rows: zoom, move, and the reasons of the row that is pointed at.
// Without this script the first view is there, as a drawing.
//
// A view is a part of the plane {x, y, width, height}; the first one is the unit square.

const HOME = { x: 0, y: 0, width: 1, height: 1 };
const EDGE = 1.5; // rows outside of the whole view are drawn this near to it, in percent
const REACH = 16; // a row is pointed at from so many pixels away
const STEP = 1.4; // one zoom
const MAX_ZOOM = 1e4;
const N_COLOURS = 8;

function setUpMap(section, data) {
  const map = new RowMap(section, data);
  section.querySelector(".tools").hidden = false;
  listenToButtons(section, map);
  listenToKeys(map);
  listenToPointer(map);
  return map;
}

class RowMap {
  constructor(section, data) {
    this.data = data;
    this.plot = section.querySelector(".plot");
    this.tip = section.querySelector(".tip");
    this.dots = section.querySelectorAll("path.dots");
    this.squares = section.querySelectorAll(".squares, .squares-inside");
    this.ring = section.querySelector(".chosen");
    this.names = section.querySelectorAll(".cluster-name");
    this.count = data.x.length;
    this.outliers = range(this.count).filter((i) => data.labels[i] === -1);
    this.placeOfRow = new Map(data.rows.map((row, i) => [row, i]));
    this.middles = this.findMiddles();
    this.all = this.findAll();
    this.view = HOME;
    this.chosen = null;
    this.plot.tabIndex = 0;
  }

  // The middle of the rows of each cluster, where its number stands.
  findMiddles() {
    const middles = new Map();
    for (const name of this.names) {
      const label = Number(name.dataset.label);
      const members = range(this.count).filter((i) => this.data.labels[i] === label);
      middles.set(name, [
        median(members.map((i) => this.data.x[i])),
        median(members.map((i) => this.data.y[i])),
      ]);
    }
    return middles;
  }

  // The view of all rows, however far out.
  findAll() {
    const low = [0, 0];
    const high = [1, 1];
    for (const [axis, values] of [this.data.x, this.data.y].entries()) {
      for (const value of values) {
        low[axis] = Math.min(low[axis], value);
        high[axis] = Math.max(high[axis], value);
      }
    }
    const width = 1.04 * (high[0] - low[0]);
    const height = 1.04 * (high[1] - low[1]);
    return { x: low[0] - width / 52, y: low[1] - height / 52, width, height };
  }

  // Where a row is drawn, in percent; while all is in view, no row leaves it.
  position(i) {
    const x = (100 * (this.data.x[i] - this.view.x)) / this.view.width;
    const y = 100 - (100 * (this.data.y[i] - this.view.y)) / this.view.height;
    if (this.view.width < 1) {
      return [x, y];
    }
    return [clamp(x, EDGE, 100 - EDGE), clamp(y, EDGE, 100 - EDGE)];
  }

  isInside(i) {
    const x = (this.data.x[i] - this.view.x) / this.view.width;
    const y = (this.data.y[i] - this.view.y) / this.view.height;
    return x >= 0 && x <= 1 && y >= 0 && y <= 1;
  }

  show(view) {
    this.view = view;
    this.plot.classList.toggle("is-zoomed", view.width < 1);
    const paths = range(N_COLOURS).map(() => []);
    const outliers = [];
    for (let i = 0; i < this.count; i++) {
      const [x, y] = this.position(i);
      if (x > -5 && x < 105 && y > -5 && y < 105) {
        const label = this.data.labels[i];
        const path = label === -1 ? outliers : paths[label % N_COLOURS];
        path.push(dot(x, y));
      }
    }
    for (const element of this.dots) {
      element.setAttribute("d", paths[Number(element.dataset.colour)].join(""));
    }
    for (const element of this.squares) {
      element.setAttribute("d", outliers.join(""));
    }
    for (const [name, [x, y]] of this.middles) {
      const left = (100 * (x - view.x)) / view.width;
      const top = 100 - (100 * (y - view.y)) / view.height;
      name.style.left = `${left}%`;
      name.style.top = `${top}%`;
      name.hidden = left < 0 || left > 100 || top < 0 || top > 100;
    }
    this.choose(this.chosen);
  }

  // Zoom by a factor, around a place in shares of the plot from its top left.
  zoom(factor, left = 0.5, top = 0.5) {
    const widest = Math.max(this.all.width, 1);
    const width = clamp(this.view.width / factor, 1 / MAX_ZOOM, widest);
    const height = (this.view.height * width) / this.view.width;
    this.show({
      x: this.view.x + left * (this.view.width - width),
      y: this.view.y + (1 - top) * (this.view.height - height),
      width,
      height,
    });
  }

  // Move by shares of the view.
  move(right, up) {
    const { x, y, width, height } = this.view;
    this.show({ x: x + right * width, y: y + up * height, width, height });
  }

  // Look for the nearest row, outliers first where both are near.
  find(left, top) {
    const box = this.plot.getBoundingClientRect();
    let best = null;
    let least = REACH * REACH;
    for (let i = 0; i < this.count; i++) {
      const [x, y] = this.position(i);
      const right = (x * box.width) / 100 - left;
      const down = (y * box.height) / 100 - top;
      const squared = right * right + down * down;
      if (squared < least) {
        best = i;
        least = squared;
      }
    }
    return best;
  }

  // Mark a row and tell its reasons, or none.
  choose(i) {
    this.chosen = i;
    const [x, y] = i === null ? [-1, -1] : this.position(i);
    const isSeen = x >= 0 && x <= 100 && y >= 0 && y <= 100;
    this.tip.hidden = !isSeen;
    this.ring.setAttribute("d", isSeen ? dot(x, y) : "");
    if (isSeen) {
      this.tip.replaceChildren(...this.describe(i));
      this.tip.style.left = x < 50 ? `${x}%` : "";
      this.tip.style.right = x < 50 ? "" : `${100 - x}%`;
      this.tip.style.top = y < 50 ? `${y}%` : "";
      this.tip.style.bottom = y < 50 ? "" : `${100 - y}%`;
    }
  }

  describe(i) {
    const isOutlier = this.data.labels[i] === -1;
    const near = this.data.has_clusters ? `, nearest to cluster ${this.data.nearest_labels[i]}` : "";
    const inside = this.data.has_clusters ? `cluster ${this.data.labels[i]}` : "kept";
    const lines = [
      element("strong", `row ${this.data.ids[i]}`),
      element("div", isOutlier ? `outlier${near}` : inside),
      element("div", `score ${this.data.scores[i]}`),
    ];
    if (!this.isInside(i)) {
      lines.push(element("div", "lies further out"));
    }
    const reasons = this.data.reasons[i];
    for (let j = 0; j < reasons.length; j += 2) {
      lines.push(element("div", this.say(reasons[j], reasons[j + 1]), "reason"));
    }
    return lines;
  }

  say(place, difference) {
    const name = this.data.names[place];
    const whole = this.data.has_clusters ? "its cluster" : "the other rows";
    if (this.data.is_category[place]) {
      return `${name} is rare in ${whole}`;
    }
    const size = Math.abs(difference);
    const digits = size < 9.95 ? size.toFixed(1) : Math.round(size).toLocaleString("en");
    return `${name} is ${digits} spreads ${difference > 0 ? "above" : "below"} ${whole}`;
  }

  // Go to a row, which may be out of view.
  visit(i) {
    if (!this.isInside(i)) {
      const isNear = range(2).every((axis) => {
        const value = [this.data.x, this.data.y][axis][i];
        return value >= 0 && value <= 1;
      });
      this.show(isNear ? HOME : this.all);
    }
    this.choose(i);
  }

  // Go to the next or the previous outlier, the strangest first.
  step(direction) {
    const rows = this.outliers.length ? this.outliers : range(this.count);
    const here = rows.indexOf(this.chosen);
    const first = direction > 0 ? 0 : rows.length - 1;
    const next = here < 0 ? first : (here + direction + rows.length) % rows.length;
    this.visit(rows[next]);
  }
}

function listenToButtons(section, map) {
  const actions = {
    ".zoom-in": () => map.zoom(STEP),
    ".zoom-out": () => map.zoom(1 / STEP),
    ".zoom-home": () => map.show(HOME),
    ".zoom-all": () => map.show(map.all),
  };
  for (const [name, action] of Object.entries(actions)) {
    section.querySelector(name).addEventListener("click", action);
  }
}

function listenToKeys(map) {
  const actions = {
    "+": () => map.zoom(STEP),
    "=": () => map.zoom(STEP),
    "-": () => map.zoom(1 / STEP),
    0: () => map.show(HOME),
    ArrowLeft: () => map.move(-0.1, 0),
    ArrowRight: () => map.move(0.1, 0),
    ArrowUp: () => map.move(0, 0.1),
    ArrowDown: () => map.move(0, -0.1),
    n: () => map.step(1),
    p: () => map.step(-1),
    Escape: () => map.choose(null),
  };
  map.plot.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (action && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  });
}

function listenToPointer(map) {
  const plot = map.plot;
  let start = null; // where a drag began, and the view at that time

  plot.addEventListener("pointerdown", (event) => {
    // A finger on the whole map scrolls the page.
    if (event.pointerType === "mouse" || map.view.width < 1) {
      start = { x: event.clientX, y: event.clientY, view: map.view };
      plot.setPointerCapture(event.pointerId);
    }
  });
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    if (start && event.buttons) {
      const right = (event.clientX - start.x) / box.width;
      const down = (event.clientY - start.y) / box.height;
      const { x, y, width, height } = start.view;
      map.show({ x: x - right * width, y: y + down * height, width, height });
    } else {
      map.choose(map.find(event.clientX - box.left, event.clientY - box.top));
    }
  });
  plot.addEventListener("pointerup", () => {
    start = null;
  });
  plot.addEventListener("pointercancel", () => {
    start = null;
  });
  plot.addEventListener("pointerleave", (event) => {
    // A touch leaves as it ends, but what it chose stays.
    if (!start && event.pointerType === "mouse") {
      map.choose(null);
    }
  });
  plot.addEventListener("click", (event) => {
    const box = plot.getBoundingClientRect();
    map.choose(map.find(event.clientX - box.left, event.clientY - box.top));
  });
  plot.addEventListener(
    "wheel",
    (event) => {
      // The wheel scrolls the page until the map was clicked.
      if (document.activeElement !== plot && !event.ctrlKey) {
        return;
      }
      event.preventDefault();
      const box = plot.getBoundingClientRect();
      const left = (event.clientX - box.left) / box.width;
      const top = (event.clientY - box.top) / box.height;
      map.zoom(event.deltaY < 0 ? STEP : 1 / STEP, left, top);
    },
    { passive: false },
  );
}

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = className;
  return made;
}

function dot(x, y) {
  return `M${x.toFixed(2)} ${y.toFixed(2)}h.01`;
}

function range(count) {
  return Array.from({ length: count }, (_, i) => i);
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

function median(values) {
  const sorted = values.slice().sort((one, two) => one - two);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
