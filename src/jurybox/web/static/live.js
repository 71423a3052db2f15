"use strict";
// Until a run is finished and its page is complete, polls the server and updates the panels.
(() => {
  const run = document.getElementById("run");
  const news = document.getElementById("news");
  if (!run) return;
  const pause = 2000;
  const stopped = 10000;
  const soon = 400; // the server is already computing what the page still lacks
  const longest = 30000;
  let wait = pause;
  let failed = false;
  let took = 0;

  const panels = () => document.getElementById("panels");
  const lacking = () => panels().dataset.version.endsWith("-pending");

  async function renew() {
    const began = performance.now();
    const answer = await fetch(run.dataset.panels, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("panels");
    if (!fresh) throw new Error("no panels");
    // What was open stays open, and the reader's scroll position is kept.
    const open = new Set([...run.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
    fresh.querySelectorAll("details > summary").forEach((each) => {
      if (open.has(each.textContent)) each.parentElement.open = true;
    });
    panels().replaceWith(fresh);
    return performance.now() - began;
  }

  async function look() {
    try {
      const answer = await fetch(run.dataset.progress, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const progress = await answer.json();
      if (failed) news.textContent = "";
      failed = false;
      if (progress.version !== panels().dataset.version) {
        // Keyboard focus inside the panels is kept.
        if (!panels().contains(document.activeElement) || progress.status !== "running") {
          took = await renew();
        }
        if (run.dataset.status !== "finished") {
          news.textContent = progress.status === "running"
            ? `${progress.samples} of ${progress.planned} samples so far`
            : `The run is ${progress.status}.`;
        }
      }
      if (progress.status === "finished" && progress.version === panels().dataset.version) return;
      // A stopped run may be resumed at any time; a large run takes long to read.
      wait = Math.max(20 * took, progress.status === "stopped" ? stopped : lacking() ? soon : pause);
    } catch {
      failed = true;
      news.textContent = "The server isn't responding; trying again.";
      wait = Math.min(2 * wait, longest);
    }
    setTimeout(look, wait);
  }

  setTimeout(look, lacking() ? soon : pause);
})();
