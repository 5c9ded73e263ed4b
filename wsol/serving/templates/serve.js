"use strict";
// Sends photos to the server and draws what it answers. The boxes of every threshold come from Python with the
// answer; this script looks them up and never computes one.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const photos = [];  // on the page, the newest first
  const models = data.models.map((model, number) => ({...model, number, t: model.start, label: null, chosen: model.method}));

  function make(tag, attributes = {}, parent = null, space = null) {
    const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "text") node.textContent = value;
      else node.setAttribute(key, value);
    }
    if (parent) parent.append(node);
    return node;
  }
  const say = (text) => { byId("status").textContent = text; };
  const percent = (score) => `${(score * 100).toFixed(score < 0.1 ? 1 : 0)} %`;
  const shown = (value) => value.toFixed(Math.abs(value * 100 - Math.round(value * 100)) < 1e-6 ? 2 : 3);

  // ---- asking the server, a few requests at a time ------------------------------------------------------------
  const AT_ONCE = 3, waiting = [];
  let running = 0;
  function next() {
    while (running < AT_ONCE && waiting.length) {
      running++;
      waiting.shift()().finally(() => { running--; next(); });
    }
  }
  const enqueue = (job) => new Promise((done, failed) => {
    waiting.push(() => job().then(done, failed));
    next();
  });
  async function ask(path, options = {}) {
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The photo could not be sent. Is the file still there, and is `wsol serve` still running?");
    }
    if (response.ok) return response;
    const said = await response.json().catch(() => ({}));
    throw new Error(said.error || `The server answered ${response.status}.`);
  }
  const post = (path, body, signal) => enqueue(() => ask(path, {method: "POST", body, signal}));

  // ---- photos come ------------------------------------------------------------------------------------------------
  function freeName(name) {
    const taken = new Set(photos.map((photo) => photo.name));
    const dot = name.lastIndexOf("."), stem = dot > 0 ? name.slice(0, dot) : name, suffix = dot > 0 ? name.slice(dot) : "";
    for (let n = 1; ; n++) {
      const tried = n === 1 ? name : `${stem}-${n}${suffix}`;
      if (!taken.has(tried)) return tried;
    }
  }
  function add(files) {
    for (const file of files) {
      const photo = {file, name: freeName(file.name || "photo"), views: []};
      photos.unshift(photo);
      photo.node = make("article", {class: "photo"});
      const head = make("div", {class: "photo-head"}, photo.node);
      make("h3", {text: photo.name}, head);
      photo.size = make("span", {class: "small"}, head);
      const remove = make("button", {type: "button", text: "Remove", "aria-label": `Remove ${photo.name}`}, head);
      remove.addEventListener("click", () => drop(photo));
      photo.body = make("div", {class: models.length > 1 ? "views" : "views alone"}, photo.node);
      make("p", {class: "said small", text: "Reading the photo…"}, photo.body);
      byId("photos").prepend(photo.node);
      open(photo);
    }
    if (photos.length) photos[0].node.scrollIntoView({block: "nearest"});
    count();
  }
  // A picture has a height only when it has come: on a telephone it would lie below the window.
  function show(photo) {
    if (photo.node.querySelector("svg").getBoundingClientRect().bottom <= innerHeight) return;
    const dials = byId("dials"), above = getComputedStyle(dials).position === "sticky" ? dials.offsetHeight : 0;
    photo.node.style.scrollMarginTop = `${above + 14}px`;
    photo.node.scrollIntoView({block: "start"});
  }
  function drop(photo) {
    const at = photos.indexOf(photo);
    photos.splice(at, 1);
    for (const view of photo.views) view.controller.abort();
    photo.node.remove();
    const after = photos[Math.min(at, photos.length - 1)];
    (after ? after.node.querySelector("button") : byId("files")).focus();
    count();
  }
  function count() {
    byId("nothing").hidden = photos.length > 0;
    byId("clear").disabled = photos.length === 0;
    for (const model of models) {
      const ready = photos.some((photo) => photo.views[model.number] && photo.views[model.number].answer);
      document.querySelectorAll(`.model[data-model="${model.number}"] .download`).forEach((b) => { b.disabled = !ready; });
    }
  }
  function refuse(parent, error) {
    parent.replaceChildren(make("p", {class: "refused", role: "alert", text: error.message}));
  }

  async function open(photo) {
    try {
      if (photo.file.size > data.largest) {
        throw new Error(`larger than ${Math.round(data.largest / 2 ** 20)} MB; choose a smaller file`);
      }
      Object.assign(photo, await (await post("/picture", photo.file)).json().then(({picture, width, height}) => ({picture, width, height})));
    } catch (error) {
      refuse(photo.body, error);
      say(`${photo.name}: ${error.message}`);
      return;
    }
    photo.size.textContent = `${photo.width} × ${photo.height}`;
    if (!photos.includes(photo)) return;
    photo.body.replaceChildren();
    photo.views = models.map((model) => makeView(photo, model));
    if (photo === photos[0]) show(photo);
    photo.views.forEach(look);
  }

  // ---- one photo as one model sees it -------------------------------------------------------------------------------
  function makeView(photo, model) {
    const node = make("div", {class: "view", "data-model": model.number}, photo.body);
    const svg = make("svg", {viewBox: `0 0 ${photo.width} ${photo.height}`, role: "img"}, node, SVG);
    make("image", {href: photo.picture, width: photo.width, height: photo.height, preserveAspectRatio: "none"}, svg, SVG);
    const heat = make("image", {class: "heat", preserveAspectRatio: "none"}, svg, SVG);
    const boxes = ["edge", "predicted"].map((kind) => make("rect", {class: kind, visibility: "hidden"}, svg, SVG));
    const said = make("div", {class: "said"}, node);
    return {photo, model, node, svg, heat, boxes, said, label: model.label, answer: null, controller: new AbortController()};
  }
  async function look(view) {
    view.controller.abort();
    const controller = view.controller = new AbortController();
    view.node.classList.add("busy");
    if (!view.answer) view.said.replaceChildren(make("p", {class: "small", text: "Looking…"}));
    const query = new URLSearchParams({model: view.model.number});
    if (view.model.chosen) query.set("method", view.model.chosen);
    if (view.label !== null) query.set("label", view.label);
    try {
      const answer = await (await post(`/find?${query}`, view.photo.file, controller.signal)).json();
      if (controller.signal.aborted) return;
      view.answer = answer;
      tell(view);
      draw(view);
      say(`${view.photo.name}, ${view.model.name}: ${view.model.classes[answer.label]}, ${percent(answer.score)}`);
    } catch (error) {
      if (error.name === "AbortError") return;
      view.answer = null;
      for (const node of [view.heat, ...view.boxes]) node.setAttribute("visibility", "hidden");
      refuse(view.said, error);
      say(`${view.photo.name}: ${error.message}`);
    }
    view.node.classList.remove("busy");
    count();
  }
  function tell(view) {
    const {answer, model} = view, name = model.classes[answer.label];
    view.said.replaceChildren();
    const headline = make("p", {class: "headline"}, view.said);
    if (models.length > 1) make("i", {class: `swatch tone${model.number % 6}`, role: "img", "aria-label": model.name, title: model.name}, headline);
    make("b", {text: models.length > 1 ? `${model.name}: ${name}` : name}, headline);
    if (model.classes.length > 1) make("span", {class: "small numbers", text: percent(answer.score)}, headline);
    view.place = make("p", {class: "small numbers place"}, view.said);
    if (model.classes.length > 1) {
      const list = make("ol", {class: "ranking", "aria-label": "Best classes"}, view.said);
      for (const [label, score] of answer.ranking) {
        const button = make("button", {type: "button", class: "rank", "aria-pressed": label === answer.label, "data-label": label}, make("li", {}, list));
        button.style.setProperty("--share", score ?? 0);
        make("span", {text: model.classes[label]}, button);
        make("span", {text: percent(score ?? 0)}, button);
        button.addEventListener("click", () => { view.again = label; view.label = label; look(view); });
      }
      if (view.again === answer.label) {  // the list was made anew under the finger that chose from it
        const chosen = list.querySelector(`[data-label="${answer.label}"]`);
        if (chosen && document.activeElement === document.body) chosen.focus();
        view.again = null;
      }
    }
    const [x0, y0, x1, y1] = answer.region;
    for (const [key, value] of Object.entries({href: answer.heat, x: x0, y: y0, width: x1 - x0, height: y1 - y0})) {
      view.heat.setAttribute(key, value);
    }
    view.heat.setAttribute("visibility", byId("heat").checked ? "visible" : "hidden");
  }
  function draw(view) {
    if (!view.answer) return;
    const [x0, y0, x1, y1, empty] = view.answer.boxes[view.model.t];
    for (const rect of view.boxes) {
      rect.setAttribute("x", x0);
      rect.setAttribute("y", y0);
      rect.setAttribute("width", x1 - x0);
      rect.setAttribute("height", y1 - y0);
      rect.setAttribute("visibility", "visible");
      rect.classList.toggle("no-foreground", empty);
    }
    const place = `box from (${x0.toFixed(1)}, ${y0.toFixed(1)}) to (${x1.toFixed(1)}, ${y1.toFixed(1)})`;
    view.place.textContent = empty ? `nothing is above this threshold; ${place}` : place;
    view.svg.setAttribute("aria-label", `${view.photo.name}: ${view.model.classes[view.answer.label]}, ${place}`);
  }
  const viewsOf = (model) => photos.flatMap((photo) => photo.views.filter((view) => view.model === model));

  // ---- settings of each model ---------------------------------------------------------------------------------------
  for (const model of models) {
    const slider = byId(`threshold-${model.number}`), value = byId(`value-${model.number}`);
    const last = model.thresholds.length - 1;
    slider.max = Math.max(last, 1);
    slider.disabled = byId(`reset-${model.number}`).disabled = last === 0;  // it cuts its map itself
    let frame = 0;
    const show = (t) => {
      model.t = Math.min(Math.max(t, 0), last);
      slider.value = model.t;
      value.textContent = shown(model.thresholds[model.t]);
      slider.setAttribute("aria-valuetext", value.textContent);
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => viewsOf(model).forEach(draw));
    };
    slider.addEventListener("input", () => show(Number(slider.value)));
    byId(`reset-${model.number}`).addEventListener("click", () => show(model.start));
    show(model.start);

    const classes = byId(`class-${model.number}`);
    const inOrder = model.classes.map((name, label) => [name, label]).sort((a, b) => a[0].localeCompare(b[0]));
    for (const [name, label] of inOrder) make("option", {value: label, text: name}, classes);
    classes.parentElement.hidden = model.classes.length < 2;
    classes.addEventListener("change", () => {
      model.label = classes.value === "" ? null : Number(classes.value);
      for (const view of viewsOf(model)) { view.label = model.label; look(view); }
    });

    const methods = byId(`method-${model.number}`);
    for (const name of model.methods) make("option", {value: name, text: name}, methods);
    methods.value = model.method;
    methods.parentElement.hidden = model.methods.length < 2;
    methods.addEventListener("change", () => {
      model.chosen = methods.value;
      viewsOf(model).forEach(look);
    });

    document.querySelectorAll(`.model[data-model="${model.number}"] .download`).forEach((button) => {
      button.addEventListener("click", () => download(model, button.dataset.file));
    });
  }

  async function download(model, file) {
    const found = viewsOf(model).filter((view) => view.answer).reverse();  // in the order in which they came
    const record = {
      model: model.number, method: model.chosen, threshold: model.thresholds[model.t], file,
      photos: found.map(({photo, answer}) => {
        const [x0, y0, x1, y1, empty] = answer.boxes[model.t];
        return {file: photo.name, width: answer.width, height: answer.height, label: answer.label, score: answer.score,
                box: [x0, y0, x1, y1], no_foreground: empty};
      }),
    };
    try {
      const text = await (await post("/boxes", JSON.stringify(record))).blob();
      const link = make("a", {download: `${model.name.replace(/[^\w.-]+/g, "_")}_${file}`, href: URL.createObjectURL(text)});
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      say(`${link.download}: ${found.length === 1 ? "1 photo" : `${found.length} photos`}`);
    } catch (error) {
      say(error.message);
    }
  }

  // ---- the ways in which photos come --------------------------------------------------------------------------------
  byId("files").addEventListener("change", (event) => {
    add(event.target.files);
    event.target.value = "";  // so that the same file may be chosen again
  });
  let depth = 0;  // dragenter and dragleave come for every element that is crossed
  const hasFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  document.addEventListener("dragenter", (event) => {
    if (hasFiles(event)) byId("drop").classList.toggle("over", ++depth > 0);
  });
  document.addEventListener("dragleave", (event) => {
    if (hasFiles(event)) byId("drop").classList.toggle("over", --depth > 0);
  });
  document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    byId("drop").classList.remove("over");
    add(event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => {
    if (event.clipboardData && event.clipboardData.files.length) add(event.clipboardData.files);
  });
  document.querySelectorAll(".example").forEach((button) => button.addEventListener("click", async () => {
    const number = Number(button.dataset.number);
    try {
      const content = await (await ask(`/example?number=${number}`)).blob();
      add([new File([content], data.examples[number].split("/").pop())]);
    } catch (error) {
      say(error.message);
    }
  }));

  byId("heat").addEventListener("change", (event) => {
    document.querySelectorAll(".heat").forEach((node) => node.setAttribute("visibility", event.target.checked ? "visible" : "hidden"));
  });
  byId("clear").addEventListener("click", () => {
    for (const photo of [...photos]) drop(photo);
    byId("files").focus();
  });
})();
