"use strict";
// Lists the samples that the report holds, as many as are asked for at a time.
(async () => {
  const section = document.getElementById("all-samples");
  const packed = section.querySelector("[data-samples]").textContent;
  const list = section.querySelector("[data-list]");
  const status = section.querySelector("[role=status]");
  const search = section.querySelector("input");
  const only = section.querySelector("select");
  const more = section.querySelector("button");
  const page = 50;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const samples = JSON.parse(await new Response(stream).text());
  // The worst first; what has no score comes before them.
  samples.sort((a, b) => (a.score ?? -Infinity) - (b.score ?? -Infinity) || a.number - b.number);
  let found = samples;
  let shown = 0;

  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function card(sample) {
    const made = element("details", undefined, "card");
    made.id = `sample-${sample.number}`;
    const summary = element("summary");
    if (sample.score !== null) {
      summary.append(element("span", String(Math.round(sample.score * 1000) / 1000), "card-value"), " ");
    }
    summary.append(element("span", sample.id, "card-name"), " ");
    if (sample.passed !== null) {
      const word = sample.passed ? "passes" : "fails";
      summary.append(element("span", word, `badge ${word}`), " ");
    }
    for (const flag of sample.flags) summary.append(element("span", flag.replaceAll("_", " "), "badge warned"), " ");
    summary.append(element("span", sample.texts[0][1].slice(0, 160), "card-why"));
    made.append(summary);
    made.addEventListener("toggle", () => {
      if (made.querySelector("dl")) return;
      const texts = element("dl", undefined, "vote-reasoning");
      for (const [title, text] of sample.texts) {
        texts.append(element("dt", title), element("dd", text, "whole-text"));
      }
      made.append(texts);
    });
    return made;
  }

  function showMore() {
    list.append(...found.slice(shown, shown + page).map(card));
    shown = Math.min(shown + page, found.length);
    status.textContent = `${shown} of ${found.length} samples`;
    more.hidden = shown === found.length;
  }

  function find() {
    const wanted = search.value.toLowerCase();
    found = samples.filter((sample) =>
      (only.value === "" || only.value === (sample.passed ? "passes" : sample.passed === null ? "" : "fails") ||
        sample.flags.includes(only.value)) &&
      (wanted === "" || sample.id.toLowerCase().includes(wanted) ||
        sample.texts.some(([, text]) => text.toLowerCase().includes(wanted))));
    list.replaceChildren();
    shown = 0;
    showMore();
  }

  function follow() {
    const number = Number(/^#sample-(\d+)$/.exec(location.hash)?.[1] ?? NaN);
    const sample = samples.find((each) => each.number === number);
    if (!sample) return;
    if (!document.getElementById(`sample-${number}`)) list.prepend(card(sample));
    const target = document.getElementById(`sample-${number}`);
    target.open = true;
    target.scrollIntoView();
  }

  for (const flag of [...new Set(samples.flatMap((sample) => sample.flags))].sort()) {
    const option = element("option", flag.replaceAll("_", " "));
    option.value = flag;
    only.append(option);
  }
  search.addEventListener("input", find);
  only.addEventListener("change", find);
  more.addEventListener("click", showMore);
  addEventListener("hashchange", follow);
  section.querySelector(".filters").hidden = false;
  find();
  follow();
})();
