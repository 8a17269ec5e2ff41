// Values on hover, each chart's data as CSV, and tables to be sorted. A chart's points are the rows of the table below.
"use strict";
const NEAR = 30; // pixels from the pointer within which a point is shown
const UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];

// A value with the title of its axis, without what the title explains: "up and down 11.64 MB".
function shown(text, title) {
  const value = Number(text), name = title.replace(/:[^(]*/, " ");
  if (text === "" || Number.isNaN(value)) return `${name} ${text}`.trim();
  const scale = name.includes("(bytes)") && UNITS.find(([least]) => Math.abs(value) >= least);
  const [factor, unit] = scale || [1, ""];
  const number = (value / factor).toLocaleString("en", { maximumSignificantDigits: 4 });
  return `${scale ? name.replace(" (bytes)", "") : name} ${number} ${unit}`.trim();
}

function csv(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [...table.rows].map((row) => [...row.cells].map((cell) => quoted(cell.textContent)).join(",")).join("\r\n");
}

const tip = document.body.appendChild(document.createElement("output"));
tip.className = "tip";
tip.hidden = true;

for (const figure of document.querySelectorAll("figure:has(.data)")) {
  const svg = figure.querySelector("svg");
  const table = figure.querySelector("table");
  const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const points = [...table.tBodies[0].rows].map((row) => [...row.dataset.at.split(" ").map(Number), row]);

  const ring = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "circle"));
  const style = { r: 6, fill: "none", stroke: "currentColor" };
  for (const [name, value] of Object.entries(style)) ring.setAttribute(name, value);
  const hide = () => { tip.hidden = true; ring.style.visibility = "hidden"; };
  const show = (event) => {
    const toScreen = svg.getScreenCTM();
    let nearest = NEAR, found = null;
    for (const [x, y, row] of points) {
      const away = Math.hypot(toScreen.a * x + toScreen.e - event.clientX, toScreen.d * y + toScreen.f - event.clientY);
      if (away < nearest) [nearest, found] = [away, [x, y, row]];
    }
    if (!found) return hide();
    const [x, y, row] = found;
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.style.visibility = "visible";
    const [name, ...values] = [...row.cells].map((cell) => cell.textContent);
    tip.textContent = [name, ...values.map((value, k) => shown(value, titles[k + 1]))].join("\n");
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  };
  hide();
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);

  const button = figure.querySelector(".data").appendChild(document.createElement("button"));
  button.textContent = "Save as CSV";
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    link.download = `${figure.querySelector("figcaption").textContent}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

// A table to be sorted: by a click on a column's title, the other way round by another; and searched.
for (const table of document.querySelectorAll(".sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const value = (row, k) => row.cells[k].dataset.order ?? row.cells[k].textContent;
  const compare = (a, b) => (Number.isNaN(a - b) ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.ariaSort === "ascending" ? -1 : 1;
      const known = (row) => (["", "–"].includes(value(row, k)) ? 1 : 0); // what is not known is last both ways
      const rows = [...body.rows].sort((a, b) => known(a) - known(b) || sign * compare(value(a, k), value(b, k)));
      body.append(...rows);
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.ariaSort = sign === 1 ? "ascending" : "descending";
    });
  });
  const search = document.createElement("input");
  search.type = "search";
  search.className = "search";
  search.placeholder = "Search";
  search.setAttribute("aria-label", "Search the table");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  table.parentElement.before(search);
}
