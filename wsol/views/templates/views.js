"use strict";
// Views inside the page, each with an address: #class/3 is the class with label 3, #pair/3/7 are the images of 3 named
// 7 and of 7 named 3. Numbers come from Python; this script sets them in tables and chooses the images of the gallery.
(() => {
  const {data, show, shot, swatch, which, enlarge, shown} = gallery;
  const {classes, runs, images, kinds, class_views: views} = data;
  const byId = (id) => document.getElementById(id), title = document.title;
  const filled = [...classes.keys()].filter((label) => views.runs[0].images[label] > 0);
  const classLink = (label, parent, text = classes[label]) => make("a", {href: `#class/${label}`, text}, parent);
  const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(0)} %` : "");

  function table(parent, heading, columns) {
    make("h3", {text: heading}, parent);
    const frame = make("table", {class: "figures"}, make("div", {class: "scroll"}, parent));
    const head = make("tr", {}, make("thead", {}, frame)), body = make("tbody", {}, frame);
    columns.forEach((column, k) => make("th", {scope: "col", class: k ? "num" : "", ...column}, head));
    return (fill, cells, kind = "") => {
      const row = make("tr", {class: kind}, body);
      fill(make("th", {scope: "row"}, row));
      for (const text of cells) make("td", {class: "num", text}, row);
    };
  }
  const runName = (run) => (cell) => {
    if (runs.length > 1) swatch(run, cell);
    cell.append(run.name);
  };
  // Two numbers of each run: two columns where there is one run; "7 (3)" in a column of each where there are several.
  const pairColumns = (first, one, two) => (runs.length === 1 ? [{text: first}, {text: one}, {text: two}]
    : [{text: `${first}: ${one} (${two})`}, ...runs.map((run) => ({text: run.name}))]);
  const pairCells = (pairs) => (runs.length === 1 ? pairs[0] : pairs.map(([one, two]) => `${one} (${two})`));

  function figures(parent, label) {
    const add = table(parent, "Figures in percent", [{text: "Run"}, {text: "images"},
      ...views.figures.map((figure) => ({text: figure.label, title: figure.title}))]);
    runs.forEach((run, r) => {
      const own = views.runs[r];
      add(runName(run), [own.images[label], ...own.of_class[label]]);
      add((cell) => cell.append("all classes"), [own.images.reduce((a, b) => a + b, 0).toLocaleString("en"), ...own.all], "baseline");
    });
  }
  function outcomes(parent, label) {
    const add = table(parent, "Outcomes", pairColumns("Outcome", "images", "share"));
    kinds.forEach((kind, k) => {
      const counts = views.runs.map((own) => own.outcomes[label][k]);
      if (!counts.some((count) => count)) return;
      add((cell) => cell.append(kind), pairCells(counts.map((n, r) => [n, percent(n, views.runs[r].images[label])])));
    });
  }
  function confused(parent, heading, none, chosen, other) {
    if (!runs.some((run) => run.knows_classes)) return;
    if (!chosen.length) {
      make("h3", {text: heading}, parent);
      make("p", {class: "aside", text: none}, parent);
      return;
    }
    const add = table(parent, heading, pairColumns("Class", "images", "box passes"));
    for (const row of chosen) {
      const [truth, named, counts, passed] = row;
      add((cell) => make("a", {href: `#pair/${truth}/${named}`, text: other(row)}, cell),
        pairCells(counts.map((n, r) => [n, passed[r]])));
    }
  }

  function classView(label) {
    const body = byId("view-body"), at = filled.indexOf(label), name = classes[label];
    figures(body, label);
    const row = make("div", {class: "columns"}, body), column = () => make("div", {}, row);
    row.style.setProperty("--least", `${220 + 80 * runs.length}px`);
    outcomes(column(), label);
    confused(column(), `${name} named as another class`, "No image was named as another class.",
      views.confusions.filter(([truth]) => truth === label), ([, named]) => classes[named]);
    confused(column(), `Other classes named ${name}`, "No image of another class got this name.",
      views.confusions.filter(([, named]) => named === label), ([truth]) => classes[truth]);
    neighbour("view-previous", filled[at - 1], "Previous class: ");
    neighbour("view-next", filled[at + 1], "Next class: ");
    return {name, map: before ? before.which : which(), only: (i) => images.label[i] === label};
  }
  function pairView(a, b) {
    const body = byId("view-body"), both = [[a, b], [b, a]];
    confused(body, "How often", "These two classes are never confused.",
      views.confusions.filter(([t, n]) => both.some(([x, y]) => t === x && n === y)),
      ([t, n]) => `${classes[t]} named ${classes[n]}`);
    const links = make("p", {}, body);
    links.append("The classes: ");
    classLink(a, links);
    links.append(", ");
    classLink(b, links);
    for (const id of ["view-previous", "view-next"]) byId(id).hidden = true;
    return {name: `${classes[a]} and ${classes[b]}`, map: "true", only: (i) => both.some(([t, n]) =>
      images.label[i] === t && runs.some((run) => run.predicted[i] === n))};
  }
  function neighbour(id, label, words) {
    const link = byId(id);
    link.hidden = label === undefined;
    if (label === undefined) return;
    link.href = `#class/${label}`;
    link.textContent = words + classes[label];
  }

  // ---- addresses: links, the back and forward buttons, and a page that is opened at a view --------------------------
  const places = new Map();  // by address: how far it was scrolled, and what had the focus
  let now = "", before = null, followed = false;
  function route() {
    const hash = location.hash, numbers = hash.split("/").slice(1).map(Number);
    const known = numbers.every((label) => classes[label] !== undefined);
    const view = known && /^#class\/\d+$/.test(hash) ? classView : known && /^#pair\/\d+\/\d+$/.test(hash) ? pairView : null;
    const section = byId("view"), inside = document.body.dataset.view !== undefined;
    const place = followed ? null : places.get(hash);
    followed = false;
    now = hash;
    if (!view && !inside) {  // an anchor of the page itself: the browser goes there
      if (place) scrollTo({top: place.top, behavior: "instant"});
      return;
    }
    byId("view-body").replaceChildren();
    section.hidden = !view;
    if (view) {
      const {name, map, only} = view(...numbers);
      document.body.dataset.view = hash;
      byId("view-name").textContent = name;
      document.title = `${name} · ${title}`;
      const shownBefore = show(only, map);
      before = inside ? before : shownBefore;
    } else {
      delete document.body.dataset.view;
      document.title = title;
      show(before.only, before.which, before.filters);
      before = null;
    }
    if (place) {
      scrollTo({top: place.top, behavior: "instant"});
      if (place.focus && place.focus.isConnected) place.focus.focus({preventScroll: true});
    } else if (view) {
      byId("view-name").focus({preventScroll: true});
      section.scrollIntoView({behavior: "instant"});
    } else {
      document.getElementById(hash.slice(1))?.scrollIntoView({behavior: "instant"});
    }
  }
  history.scrollRestoration = "manual";  // pages of other heights share one history
  const remember = () => places.set(now, {top: scrollY, focus: document.activeElement});
  addEventListener("click", (event) => {
    if (!event.target.closest("a[href^='#']")) return;
    followed = true;
    remember();
  }, {capture: true});
  addEventListener("scroll", () => { if (location.hash === now) places.set(now, {...places.get(now), top: scrollY}); },
    {passive: true});
  addEventListener("hashchange", route);

  for (const parent of document.querySelectorAll("[data-shots]")) {
    for (const i of parent.dataset.shots.split(" ").filter(Boolean).map(Number)) {
      shot(parent, i, () => {
        followed = true;
        remember();
        location.hash = parent.dataset.view;
        addEventListener("hashchange", () => { if (shown().includes(i)) enlarge(i); }, {once: true});
      });
    }
  }
  route();
})();
