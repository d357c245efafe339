"use strict";
// A click on a column's head sorts its table by it, a second one the other way round; what has no number stands last.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, i) => {
    const cell = row.cells[i];
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent.trim();
    return text === "" || text === "–" ? null : text;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return a === b ? 0 : a === null ? Infinity : -Infinity;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  heads.forEach((head, i) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, i), row]);
    rows.sort(([a], [b]) => {
      const found = compare(a, b);
      return Number.isFinite(found) && down ? -found : found;
    });
    body.append(...rows.map(([, row]) => row));
  }));
}
// A link from a table to a cell's scenario opens it.
const open = () => {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = found; fold; fold = fold.parentElement) if (fold instanceof HTMLDetailsElement) fold.open = true;
  if (found instanceof HTMLDetailsElement) found.scrollIntoView();
};
addEventListener("hashchange", open);
open();
// A table that is wider than the page, or longer than its box, says so.
const mark = () => {
  for (const box of document.querySelectorAll(".scroll")) {
    const wider = box.scrollWidth > box.clientWidth + 1, tall = box.scrollHeight > box.clientHeight + 1, of = box.parentElement.classList;
    of.toggle("overflows", wider || tall);
    of.toggle("wider", wider);
    of.toggle("tall", tall);
  }
};
addEventListener("resize", mark);
for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", mark);
mark();
