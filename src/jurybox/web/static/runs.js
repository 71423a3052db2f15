"use strict";
// Until the reviews of all listed runs are compared, renews the verdicts that wait for them.
(() => {
  const waits = [0.5, 1, 2, 4, 8, 16, 32];  // seconds; what takes longer needs a reload

  async function look() {
    const late = [...document.querySelectorAll("[data-late]")];
    if (!late.length) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const cell of late) {
        const fresh = page.getElementById(cell.id);
        // A run may no longer match the filter of the list.
        if (!fresh) cell.removeAttribute("data-late");
        else if (!cell.contains(document.activeElement)) cell.replaceWith(fresh);
      }
    } catch {
      // The server may be back next time.
    }
    next();
  }

  function next() {
    if (waits.length) setTimeout(look, 1000 * waits.shift());
  }

  next();
})();
