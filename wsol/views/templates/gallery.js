"use strict";
// Draws the gallery from the data that Python put into this page. Boxes, overlaps, outcomes and accuracies at
// each threshold were all computed by Python; this script looks them up and never decides anything itself.
const gallery = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const {images, runs, thresholds, classes, kinds} = data;
  const T = thresholds.length, N = images.name.length;
  const SVG = "http://www.w3.org/2000/svg";

  function bytes(text) {
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }
  const words = (text) => new Uint16Array(bytes(text).buffer);  // little endian, as every browser's machine is
  const heatColours = bytes(data.heat_table);
  for (const run of runs) {
    for (const which of ["true", "top"]) {
      const part = run[which];
      part.boxes = words(part.boxes);   // N x T x 4, in 65535ths of width and height
      part.overlap = words(part.overlap); // N x T, IoU in 10,000ths; the highest bit says that the image is a hit
      part.heat = bytes(part.heat);     // N x h x w, 0...255
    }
    run.kind = bytes(run.kind);         // N x T, an index into kinds
  }

  const state = {t: data.start, sort: "iou-up", by: 0, which: "top", heat: true, order: [], place: -1,
                 only: () => true};

  // ---- one image of one run ---------------------------------------------------------------------------------
  const boxAt = (run, i, t, which = state.which) => {
    const at = 4 * (i * T + t), size = [images.width[i], images.height[i]];
    return [0, 1, 2, 3].map((k) => (run[which].boxes[at + k] / 65535) * size[k % 2]);
  };
  const overlapAt = (run, i, t) => (run[state.which].overlap[i * T + t] & 0x7fff) / 10000;
  const hitAt = (run, i, t) => run[state.which].overlap[i * T + t] >> 15 === 1;
  const kindAt = (run, i, t) => run.kind[i * T + t];

  // Interpolate first and colour afterwards: colours between two samples are then those of the heat between.
  const FINE = 8;
  function heatPicture(run, i) {
    const [h, w] = run.shape, from = i * h * w, heat = run[state.which].heat;
    const canvas = document.createElement("canvas");
    canvas.width = w * FINE;
    canvas.height = h * FINE;
    const context = canvas.getContext("2d"), picture = context.createImageData(canvas.width, canvas.height);
    const clamp = (v, top) => Math.min(Math.max(v, 0), top);
    for (let y = 0, out = 0; y < canvas.height; y++) {
      const v = clamp((y + 0.5) / FINE - 0.5, h - 1), y0 = Math.floor(v), y1 = Math.min(y0 + 1, h - 1), b = v - y0;
      for (let x = 0; x < canvas.width; x++, out += 4) {
        const u = clamp((x + 0.5) / FINE - 0.5, w - 1), x0 = Math.floor(u), x1 = Math.min(x0 + 1, w - 1), a = u - x0;
        const top = heat[from + y0 * w + x0] * (1 - a) + heat[from + y0 * w + x1] * a;
        const low = heat[from + y1 * w + x0] * (1 - a) + heat[from + y1 * w + x1] * a;
        const level = 4 * Math.round(top * (1 - b) + low * b);
        for (let k = 0; k < 4; k++) picture.data[out + k] = heatColours[level + k];
      }
    }
    context.putImageData(picture, 0, 0);
    return canvas.toDataURL();
  }

  // The colour of a run, as in the table and the charts: names are long and panels are narrow.
  const TONES = 6;
  const swatch = (run, parent) => make("i", {class: `swatch tone${runs.indexOf(run) % TONES}`, role: "img",
                                             title: run.name, "aria-label": run.name}, parent);

  function setRect(nodes, box) {
    for (const node of nodes) {
      node.setAttribute("x", box[0]);
      node.setAttribute("y", box[1]);
      node.setAttribute("width", Math.max(box[2] - box[0], 0));
      node.setAttribute("height", Math.max(box[3] - box[1], 0));
    }
  }

  // The panels of image i, one for each run; returns a function that brings them to a threshold. Everything is
  // drawn in pixels of the photo, whatever picture of it is shown, so boxes and heat lie where they belong.
  const LARGE = 640;  // an enlarged photo gets at least this many pixels of the screen, and not more than it has
  function drawPanels(parent, i, large = false, shown = runs) {
    const [w, h] = [images.width[i], images.height[i]], updates = [];
    for (const run of shown) {
      const panel = make("div", {class: "panel"}, parent);
      const svg = make("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": images.name[i]}, panel, SVG);
      const whole = {width: w, height: h, preserveAspectRatio: "none"};
      make("image", {class: "photo", href: images.picture[i], ...whole}, svg, SVG);
      if (large) {
        const most = Math.max(1, LARGE / Math.max(w, h));
        svg.style.maxWidth = `${w * most}px`;
        svg.style.maxHeight = `${h * most}px`;
        if (images.large.length) {  // over the small picture, which stays where the file is not there
          const picture = make("image", {class: "photo", href: images.large[i], ...whole}, svg, SVG);
          picture.addEventListener("error", () => picture.remove());
        }
      }
      if (state.heat) {
        const region = images.region[i].map((v, k) => v * (k % 2 ? h : w));
        make("image", {class: "heat", href: heatPicture(run, i), x: region[0], y: region[1],
                       width: region[2] - region[0], height: region[3] - region[1],
                       preserveAspectRatio: "none"}, svg, SVG);
      }
      for (const box of images.truth[i]) {
        setRect([make("rect", {class: "edge"}, svg, SVG), make("rect", {class: "truth"}, svg, SVG)], box);
      }
      const found = [make("rect", {class: "edge"}, svg, SVG), make("rect", {class: "predicted"}, svg, SVG)];
      const line = make("div", {class: "verdict"}, panel);
      const right = run.predicted[i] === images.label[i];
      const said = state.which === "top" ? run.predicted[i] : images.label[i];
      if (runs.length > 1) swatch(run, line);
      const name = run.knows_classes || said < 0 ? classes[said] ?? "unread" : "object";
      make("span", {class: right || state.which === "true" ? "" : "wrong", text: name}, line);
      if (run.knows_classes) {
        make("span", {class: "score", text: `${(run.score[state.which][i] * 100).toFixed(0)}%`}, line);
      }
      const mark = make("b", {}, line);
      updates.push((t) => {
        setRect(found, boxAt(run, i, t));
        mark.textContent = images.truth[i].length ? `IoU ${overlapAt(run, i, t).toFixed(2)}` : "";
        mark.className = hitAt(run, i, t) ? "hit" : "miss";
        svg.setAttribute("data-kind", kinds[kindAt(run, i, t)]);
      });
    }
    return (t) => updates.forEach((update) => update(t));
  }

  // ---- the gallery: every card has its place, only those near the window are filled ---------------------------
  const grid = byId("grid");
  if (runs.length === 1) grid.classList.add("one-run");
  else grid.style.setProperty("--card-width", `${165 * runs.length}px`);
  const cards = images.name.map((name, i) => {
    const item = make("li", {"data-index": i}, grid);
    return {item, update: null};
  });
  function fill(i) {
    const card = cards[i];
    if (card.update) return;
    const button = make("button", {type: "button", class: "shot", tabindex: "-1"}, card.item);
    const panels = make("div", {class: "panels"}, button);
    card.update = drawPanels(panels, i);
    card.update(state.t);
    const file = images.name[i].split("/").pop(), told = runs.every((run) => run.predicted[i] === images.label[i]);
    make("div", {class: "title", title: images.name[i],
                 text: told ? file : `true: ${classes[images.label[i]]} · ${file}`}, button);
    if (i === state.order[Math.max(state.place, 0)]) button.tabIndex = 0;
  }
  function empty(i) {
    if (!cards[i].update || cards[i].item.contains(document.activeElement)) return;
    cards[i].item.replaceChildren();
    cards[i].update = null;
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) (entry.isIntersecting ? fill : empty)(Number(entry.target.dataset.index));
  }, {rootMargin: "500px 0px"});
  const refill = () => cards.forEach((card, i) => {
    if (card.update) {
      card.item.replaceChildren();
      card.update = null;
      fill(i);
    }
  });

  const find = byId("find"), ofClass = byId("class"), ofKind = byId("kind");
  function arrange() {
    const run = runs[state.by], text = find.value.trim().toLowerCase();
    const keep = (i) => state.only(i) &&
      (ofClass.value === "" || images.label[i] === Number(ofClass.value)) &&
      (ofKind.value === "" || kindAt(run, i, state.t) === Number(ofKind.value)) &&
      (!text || images.name[i].toLowerCase().includes(text) || classes[images.label[i]].toLowerCase().includes(text));
    const key = {
      "iou-up": (i) => overlapAt(run, i, state.t),
      "iou-down": (i) => -overlapAt(run, i, state.t),
      "score-up": (i) => run.score[state.which][i],
      "score-down": (i) => -run.score[state.which][i],
      "name": () => 0,
    }[state.sort];
    const shown = images.name.map((_, i) => i).filter(keep);
    const keys = new Map(shown.map((i) => [i, key(i)]));
    const rank = data.by_name;
    shown.sort((a, b) => keys.get(a) - keys.get(b) || rank[a] - rank[b]);
    state.order = shown;
    state.place = Math.min(Math.max(state.place, 0), shown.length - 1);
    const visible = new Set(shown);
    cards.forEach((card, i) => {
      if (!visible.has(i)) card.item.remove();
    });
    grid.append(...shown.map((i) => cards[i].item));
    const first = grid.querySelector(".shot[tabindex='0']");
    if (first) first.tabIndex = -1;
    const now = shown.length && grid.children[state.place].firstElementChild;
    if (now) now.tabIndex = 0;
    byId("count").textContent = `${shown.length.toLocaleString("en")} of ${N.toLocaleString("en")} images`;
    byId("none").hidden = shown.length > 0;
  }

  // ---- the threshold -----------------------------------------------------------------------------------------
  const slider = byId("threshold"), second = byId("large-threshold");
  function showThreshold() {
    const exact = thresholds[state.t], value = exact.toFixed(Math.abs(exact * 100 - Math.round(exact * 100)) < 1e-6 ? 2 : 3);
    for (const id of ["threshold-value", "large-value"]) byId(id).textContent = value;
    for (const input of [slider, second]) input.setAttribute("aria-valuetext", value);
    byId("live").replaceChildren(...runs.map((run) => {
      const line = make("span");
      if (runs.length > 1) {
        swatch(run, line);
        line.append(`${run.name}: `);
      }
      run.live.forEach((figure, k) => {
        if (k) line.append(" · ");
        line.append(`${figure.label} `);
        make("b", {text: figure.values[state.t]}, line);
      });
      return line;
    }));
    document.querySelectorAll(".chart .cursor").forEach((line) => {
      const {x, px} = JSON.parse(line.closest("svg").dataset.chart);
      const at = px[0] + ((thresholds[state.t] - x[0]) / (x[1] - x[0])) * (px[1] - px[0]);
      line.setAttribute("x1", at);
      line.setAttribute("x2", at);
    });
    for (const card of cards) if (card.update) card.update(state.t);
    if (enlarged) enlarged(state.t);
  }
  let frame = 0, enlarged = null;
  function moveTo(t) {
    state.t = Math.min(Math.max(t, 0), T - 1);
    slider.value = second.value = state.t;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(showThreshold);
  }
  slider.addEventListener("input", () => moveTo(Number(slider.value)));
  second.addEventListener("input", () => moveTo(Number(second.value)));
  slider.addEventListener("change", arrange);  // sorted anew when the slider rests: cards must not flee while it moves
  byId("reset").addEventListener("click", () => { moveTo(data.start); arrange(); });

  // ---- the other controls --------------------------------------------------------------------------------------
  const shown = [...new Set(images.label)].sort((a, b) => classes[a].localeCompare(classes[b]));
  for (const label of shown) make("option", {value: label, text: classes[label]}, ofClass);
  kinds.forEach((kind, k) => make("option", {value: k, text: kind}, ofKind));
  for (const select of [ofClass, ofKind]) select.addEventListener("change", arrange);
  byId("sort").addEventListener("change", (event) => { state.sort = event.target.value; arrange(); });
  byId("by").addEventListener("change", (event) => { state.by = Number(event.target.value); arrange(); });
  byId("which").addEventListener("change", (event) => { state.which = event.target.value; refill(); arrange(); });
  byId("heat").addEventListener("change", (event) => { state.heat = event.target.checked; refill(); });
  let typing = 0;
  find.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(arrange, 120); });

  // ---- keyboard and the enlarged image ---------------------------------------------------------------------------
  const dialog = byId("large");
  function focusCard(place) {
    const at = Math.min(Math.max(place, 0), state.order.length - 1), i = state.order[at];
    if (i === undefined) return;
    const before = grid.querySelector(".shot[tabindex='0']");
    if (before) before.tabIndex = -1;
    state.place = at;
    fill(i);
    const button = cards[i].item.firstElementChild;
    button.tabIndex = 0;
    button.focus();
    cards[i].item.scrollIntoView({block: "nearest"});
  }
  function enlarge(place) {
    const at = Math.min(Math.max(place, 0), state.order.length - 1), i = state.order[at];
    if (i === undefined) return;
    state.place = at;
    byId("large-name").textContent = images.name[i];
    byId("large-place").textContent = `${at + 1} / ${state.order.length}`;
    byId("large-body").replaceChildren();
    const draw = drawPanels(byId("large-body"), i, true);
    enlarged = (t) => {
      draw(t);
      const told = runs.map((run) => (runs.length > 1 ? `${run.name}: ` : "") + kinds[kindAt(run, i, t)]);
      byId("large-told").textContent = `True class ${classes[images.label[i]]} (red box), ` +
        `${images.width[i]} × ${images.height[i]} pixels. Outcome: ${told.join(", ")}.`;
    };
    enlarged(state.t);
    if (!dialog.open) dialog.showModal();
  }
  grid.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) enlarge(state.order.indexOf(Number(item.dataset.index)));
  });
  grid.addEventListener("keydown", (event) => {
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -N, End: N}[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const item = event.target.closest("li");
    focusCard((item ? state.order.indexOf(Number(item.dataset.index)) : state.place) + step);
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.target === second) return;  // there the arrows move the threshold
    if (event.key === "ArrowLeft") enlarge(state.place - 1);
    if (event.key === "ArrowRight") enlarge(state.place + 1);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    const i = state.order[state.place];
    enlarged = null;
    arrange();  // the threshold may have moved
    focusCard(Math.max(state.order.indexOf(i), 0));
  });
  byId("previous").addEventListener("click", () => enlarge(state.place - 1));
  byId("next").addEventListener("click", () => enlarge(state.place + 1));
  byId("close").addEventListener("click", () => dialog.close());

  // ---- for the views of classes ------------------------------------------------------------------------------------
  // Show the images for which `only` holds, by the map `which`, with these filters; returns all three as they were.
  function show(only, which, filters = {class: "", kind: "", find: ""}) {
    const fields = {class: ofClass, kind: ofKind, find};
    const before = {only: state.only, which: state.which, filters: {}};
    for (const [name, field] of Object.entries(fields)) {
      before.filters[name] = field.value;
      field.value = filters[name];
    }
    state.only = only;
    state.place = 0;
    if (which !== state.which) {
      state.which = byId("which").value = which;
      refill();
    }
    arrange();
    return before;
  }
  // A small picture of image i that does something when it is chosen: the box of its true class, by the first run
  // that names it wrongly.
  function shot(parent, i, choose) {
    const run = runs.find((one) => one.predicted[i] !== images.label[i]) ?? runs[0], which = state.which;
    const button = make("button", {type: "button", class: "shot small", title: images.name[i]}, parent);
    state.which = "true";
    drawPanels(button, i, false, [run])(state.t);
    state.which = which;
    button.addEventListener("click", choose);
  }

  arrange();
  moveTo(data.start);
  for (const card of cards) watcher.observe(card.item);
  return {data, show, shot, swatch, which: () => state.which, enlarge: (i) => enlarge(Math.max(state.order.indexOf(i), 0)),
          shown: () => state.order};
})();
