"use strict";
// Keys: j and k move between samples, / searches; Enter opens the link that has the focus. Other
// links name their keys.
(() => {
  // The first link of each row that isn't folded away.
  const table = document.querySelector("table.samples, table.outputs, table.cases");
  const rows = () => [...document.querySelectorAll(":is(.samples, .outputs, .cases) > tbody > tr")]
    .filter((row) => row.checkVisibility())
    .map((row) => row.querySelector("th[scope=row] a"));
  const link = (rel) => document.querySelector(`a[rel=${rel}]`);

  function move(step) {
    const every = rows();
    const here = every.indexOf(document.activeElement);
    const further = here >= 0 && !every[here + step] && link(step > 0 ? "next" : "prev");
    if (further) return location.assign(`${further.href.split("#")[0]}#${step > 0 ? "first" : "last"}`);
    const to = every[Math.min(Math.max(here + step, 0), every.length - 1)];
    to.focus();
    to.closest("tr").scrollIntoView({ block: "nearest" });
  }

  // A page that was opened by a key starts at its nearest row, and others at the row in their address.
  function arrive() {
    const every = rows();
    const row = document.getElementById(location.hash.slice(1))?.closest("tr");
    const ends = { "#first": every[0], "#last": every.at(-1) };
    (ends[location.hash] ?? every.find((each) => row?.contains(each)))?.focus();
  }
  // Not earlier: when a page is loaded, the browser takes the focus away to scroll to that row.
  for (const event of ["pageshow", "hashchange"]) window.addEventListener(event, arrive);

  // The browser's Back button returns to the row from which a sample was opened.
  document.addEventListener("click", ({ target }) => {
    const row = rows().find((each) => each?.contains(target))?.closest("tr [id]");
    if (row) history.replaceState(null, "", `#${row.id}`);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "/" && document.getElementById("search")) {
      document.getElementById("search").focus();
    } else if (event.key === "j" || event.key === "k") {
      const next = event.key === "j";
      if (table && rows().length) move(next ? 1 : -1);
      else if (!table && link(next ? "next" : "prev")) link(next ? "next" : "prev").click();
      else return;
    } else {
      const named = document.querySelector(`a[data-keys~="${CSS.escape(event.key)}"]`);
      if (!named) return;
      named.click();
    }
    event.preventDefault();
  });
})();
