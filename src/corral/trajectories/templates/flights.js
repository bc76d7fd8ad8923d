// Maps that zoom, and outlier tracks that say what they are. Without this script the
// maps are complete, and tracks have a tooltip of the browser.

const SCALES = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const MOST_ZOOM = 200;

function setUpSky(figure) {
  const svg = figure.querySelector("svg");
  const canvas = figure.querySelector(".canvas");
  const scale = figure.querySelector(".scale");
  const km = Number(svg.dataset.km);
  const all = svg.viewBox.baseVal;
  const [width, height] = [all.width, all.height];
  let view = { x: 0, y: 0, share: 1 };

  function show() {
    const [wide, high] = [width * view.share, height * view.share];
    view.x = Math.min(Math.max(view.x, -width), 2 * width - wide);
    view.y = Math.min(Math.max(view.y, -height), 2 * height - high);
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${wide} ${high}`);
    // Words keep their size on the screen and stay at the edge.
    const pixel = wide / (canvas.clientWidth || 1000);
    for (const text of svg.querySelectorAll(".degrees text")) {
      text.style.fontSize = `${12.5 * pixel}px`;
      if (text.classList.contains("x")) {
        text.setAttribute("y", view.y + high - 6 * pixel);
        const across = Number(text.getAttribute("x")) - view.x;
        const room = Math.min(across, wide - across);
        text.style.visibility = room > 30 * pixel ? "" : "hidden";
      } else {
        text.setAttribute("x", view.x + 6 * pixel);
      }
    }
    for (const name of svg.querySelectorAll(".name")) {
      const place = `${name.dataset.x} ${name.dataset.y}`;
      name.setAttribute("transform", `translate(${place}) scale(${pixel / 11})`);
    }
    const length = SCALES.filter((each) => each * km <= wide / 5).pop() || SCALES[0];
    scale.style.width = `${(100 * length * km) / wide}%`;
    scale.textContent = `${length.toLocaleString("en")} km`;
  }

  // The place (as shares of the view) stays where it is.
  function zoom(factor, across = 0.5, down = 0.5) {
    const share = Math.min(Math.max(view.share / factor, 1 / MOST_ZOOM), 2);
    view.x += across * width * (view.share - share);
    view.y += down * height * (view.share - share);
    view.share = share;
    show();
  }

  for (const button of figure.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) {
        zoom(factor);
      } else {
        view = { x: 0, y: 0, share: 1 };
        show();
      }
    });
  }
  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }
  canvas.addEventListener("dblclick", (event) => zoom(2, ...placeOf(event)));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(event.deltaY < 0 ? 1.25 : 0.8, ...placeOf(event));
      }
    },
    { passive: false },
  );
  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0) {
      last = placeOf(event);
    }
  });
  window.addEventListener("pointermove", (event) => {
    if (last) {
      const now = placeOf(event);
      const moved = Math.hypot(now[0] - last[0], now[1] - last[1]) > 0.003;
      if (moved || canvas.classList.contains("is-moving")) {
        canvas.classList.add("is-moving");
        view.x -= (now[0] - last[0]) * width * view.share;
        view.y -= (now[1] - last[1]) * height * view.share;
        last = now;
        show();
      }
    }
  });
  window.addEventListener("pointerup", () => {
    last = null;
    // After the click that ends a move, which must choose nothing.
    setTimeout(() => canvas.classList.remove("is-moving"));
  });
  window.addEventListener("resize", show);
  figure.querySelector(".tools").hidden = false;
  show();
}

function line(text, name) {
  const made = document.createElement("div");
  made.textContent = text;
  made.className = name;
  return made;
}

function setUpOutliers(section) {
  const figure = section.querySelector(".odd");
  const canvas = figure.querySelector(".canvas");
  const tip = figure.querySelector(".tip");
  const rows = new Map();
  const tracks = new Map();
  let chosen = null;

  function choose(number, { scroll }) {
    chosen = chosen === number ? null : number;
    for (const [each, track] of tracks) {
      track.classList.toggle("is-chosen", each === chosen);
      rows.get(each).classList.toggle("is-chosen", each === chosen);
    }
    canvas.classList.toggle("has-choice", chosen !== null);
    if (chosen !== null) {
      tracks.get(chosen).parentNode.append(tracks.get(chosen));
      if (scroll) {
        const box = section.querySelector(".tall");
        const head = box.querySelector("thead").offsetHeight;
        box.scrollTop = rows.get(chosen).offsetTop - head;
      }
    }
  }

  function tell(track, event) {
    const { id, text, reason } = track.dataset;
    const name = document.createElement("strong");
    name.textContent = id;
    tip.replaceChildren(name, line(text, ""), line(reason, "reason"));
    tip.hidden = false;
    const box = figure.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    // Beside the pointer, on the side where there is room.
    tip.style.left = x < box.width / 2 ? `${x}px` : "auto";
    tip.style.right = x < box.width / 2 ? "auto" : `${box.width - x}px`;
    tip.style.top = `${y}px`;
  }

  for (const row of section.querySelectorAll("tr[data-row]")) {
    rows.set(row.dataset.row, row);
    const cell = row.cells[0];
    const button = document.createElement("button");
    button.type = "button";
    button.className = "cell find";
    button.title = "Show on the map";
    button.textContent = cell.textContent.trim();
    button.addEventListener("click", () => {
      choose(row.dataset.row, { scroll: false });
      if (chosen !== null) {
        canvas.scrollIntoView({ block: "nearest" });
      }
    });
    cell.replaceChildren(button);
  }
  for (const track of section.querySelectorAll(".odd-one")) {
    tracks.set(track.dataset.row, track);
    track.querySelector("title").remove();
    track.addEventListener("pointermove", (event) => tell(track, event));
    track.addEventListener("pointerenter", () => track.classList.add("is-near"));
    track.addEventListener("pointerleave", () => {
      track.classList.remove("is-near");
      tip.hidden = true;
    });
    track.addEventListener("click", () => {
      if (!canvas.classList.contains("is-moving")) {
        choose(track.dataset.row, { scroll: true });
      }
    });
  }
  for (const box of section.querySelectorAll("[data-kind]:is(input)")) {
    box.disabled = false;
    box.addEventListener("change", () => {
      for (const track of tracks.values()) {
        if (track.dataset.kind === box.dataset.kind) {
          track.toggleAttribute("hidden", !box.checked);
        }
      }
    });
  }
}

const page = document.currentScript.closest(".corral-report");
for (const figure of page.querySelectorAll("figure.sky")) {
  setUpSky(figure);
}
const oddSection = page.querySelector(".strangest");
if (oddSection) {
  setUpTable(oddSection.querySelector(".list"));
  setUpOutliers(oddSection);
}
