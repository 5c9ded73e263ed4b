"use strict";
// What every page has: tables that sort, and charts that read out what is under the pointer.
const make = (tag, attributes = {}, parent = null, space = null) => {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") node.textContent = value;
    else node.setAttribute(key, value);
  }
  if (parent) parent.append(node);
  return node;
};

(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === (head.classList.contains("num") ? "none" : "ascending");
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows], text = (row) => row.cells[column].textContent;
      const compare = head.classList.contains("num")
        ? (a, b) => (parseFloat(text(a)) || 0) - (parseFloat(text(b)) || 0)
        : (a, b) => text(a).localeCompare(text(b));
      rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      table.tBodies[0].append(...rows);
    }));
  }
  for (const svg of document.querySelectorAll("svg[data-chart]")) {
    const chart = JSON.parse(svg.dataset.chart), figure = svg.parentElement, line = svg.querySelector(".hover");
    let tip = null;
    svg.addEventListener("pointermove", (event) => {
      const place = svg.getBoundingClientRect(), scale = place.width / svg.viewBox.baseVal.width;
      const at = (event.clientX - place.left) / scale;
      const wanted = chart.x[0] + ((at - chart.px[0]) / (chart.px[1] - chart.px[0])) * (chart.x[1] - chart.x[0]);
      const nearest = (xs) => xs.reduce((best, x, i) => (Math.abs(x - wanted) < Math.abs(xs[best] - wanted) ? i : best), 0);
      const x = chart.series[0].x[nearest(chart.series[0].x)];
      const px = chart.px[0] + ((x - chart.x[0]) / (chart.x[1] - chart.x[0])) * (chart.px[1] - chart.px[0]);
      line.setAttribute("x1", px);
      line.setAttribute("x2", px);
      if (!tip) tip = make("div", {class: "tip"}, figure);
      tip.replaceChildren(make("div", {text: `${chart.xLabel} ${+x.toPrecision(4)}`}));
      for (const s of chart.series) make("div", {text: `${s.name}: ${+s.y[nearest(s.x)].toPrecision(4)}`}, tip);
      const outer = figure.getBoundingClientRect();
      const left = place.left - outer.left + px * scale + 10;
      tip.style.left = `${Math.min(left, Math.max(figure.clientWidth - tip.offsetWidth - 6, 0))}px`;
      tip.style.top = `${place.top - outer.top + 4}px`;
    });
    svg.addEventListener("pointerleave", () => {
      if (tip) tip.remove();
      tip = null;
      line.setAttribute("x1", -9);
      line.setAttribute("x2", -9);
    });
  }
})();
