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
  const asked = section.querySelector("[data-asked]");
  const page = 50;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const samples = JSON.parse(await new Response(stream).text());
  // The worst first; what has no score comes before them.
  samples.sort((a, b) => (a.score ?? -Infinity) - (b.score ?? -Infinity) || a.number - b.number);
  let query = new URLSearchParams();
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
    if (sample.score !== null) summary.append(element("span", sample.shown, "card-value"), " ");
    summary.append(element("span", sample.id, "card-name"), " ");
    if (sample.passed !== null) {
      const word = sample.passed ? "passes" : "fails";
      summary.append(element("span", word, `badge ${word}`), " ");
    }
    for (const flag of sample.reasons) summary.append(element("span", flag.replaceAll("_", " "), "badge warned"), " ");
    summary.append(element("span", sample.texts[0][1].slice(0, 160), "card-why"));
    if (sample.failed) summary.append(element("span", sample.failed, "card-why bad"));
    if (sample.why) summary.append(element("span", sample.why, "card-why"));
    made.append(summary);
    made.addEventListener("toggle", () => {
      if (made.querySelector("dl")) return;
      const texts = element("dl", undefined, "vote-reasoning");
      for (const [title, text, html] of sample.texts) {
        const said = element("dd", text, html === null ? "whole-text" : "document");
        // Made of Markdown by our own renderer, which lets no tag of a text through.
        if (html !== null) said.innerHTML = html;
        texts.append(element("dt", title), said);
      }
      made.append(texts);
    });
    return made;
  }

  function showMore() {
    list.append(...found.slice(shown, shown + page).map(card));
    shown = Math.min(shown + page, found.length);
    const total = `${samples.length.toLocaleString("en")} samples`;
    const match = found.length === samples.length ? total : `${found.length.toLocaleString("en")} of ${total}`;
    status.textContent = found.length === 0 ? `None of ${total} matches`
      : shown < found.length ? `${match}, the first ${shown} are shown` : match;
    more.hidden = shown === found.length;
  }

  // Links of the report ask for samples as those of the viewer do: flag=failed&metric=tone&high=2
  function meets(sample) {
    const value = sample.metrics[query.get("metric")];
    return (!query.has("flag") || sample.flags.includes(query.get("flag"))) &&
      meetsReview(sample, query.get("review")) &&
      ["scenario", "demographic", "winner"].every((name) => !query.has(name) || sample[name] === query.get(name)) &&
      (!query.has("metric") || (value >= Number(query.get("low") ?? -Infinity) && value <= Number(query.get("high") ?? Infinity)));
  }

  function meetsReview(sample, wanted) {
    if (wanted === "open") return query.has("flag") ? sample.open.includes(query.get("flag")) : sample.open.length > 0;
    return wanted === null || sample[wanted];
  }

  function described() {
    const said = [];
    for (const [name, value] of query) {
      const near = Math.round(Number(value) * 1e5) / 1e5;
      if (name === "flag") said.push(value.replaceAll("_", " "));
      else if (name === "review") said.push({ open: "to be reviewed", awaiting: "awaiting review", confirmed: "a confirmed safety concern" }[value]);
      else if (name === "high") said.push(`${query.get("metric")} ${near > Number(value) ? "<" : "<="} ${near}`);
      else if (name === "low") said.push(`${query.get("metric")} ${near < Number(value) ? ">" : ">="} ${near}`);
      else if (name !== "metric" && name !== "sort" && name !== "descending") said.push(`${name} ${value}`);
    }
    return said.length ? `Only ${said.join(", ")}` : `By ${query.get("sort")?.split(":")[1]}, the highest first`;
  }

  function find() {
    const wanted = search.value.toLowerCase();
    asked.hidden = query.size === 0;
    asked.querySelector("strong").textContent = described();
    found = samples.filter((sample) => meets(sample) &&
      (only.value === "" || sample.flags.includes(only.value)) &&
      (wanted === "" || sample.id.toLowerCase().includes(wanted) ||
        sample.texts.some(([, text]) => text.toLowerCase().includes(wanted))));
    const [, sorted] = (query.get("sort") ?? "").split(":");
    if (sorted) found.sort((a, b) => (b.metrics[sorted] ?? -Infinity) - (a.metrics[sorted] ?? -Infinity));
    list.replaceChildren();
    shown = 0;
    showMore();
  }

  function follow() {
    const link = /^#all-samples\??(.*)$/.exec(location.hash);
    if (link) {
      query = new URLSearchParams(link[1]);
      search.value = "";
      only.value = query.get("flag") ?? "";
      find();
      section.scrollIntoView();
      return;
    }
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
  only.addEventListener("change", () => {
    query.delete("flag");
    find();
  });
  more.addEventListener("click", showMore);
  // Nobody can ask for more on paper.
  addEventListener("beforeprint", () => {
    while (shown < found.length) showMore();
  });
  addEventListener("hashchange", follow);
  section.querySelector(".filters").hidden = false;
  find();
  follow();
})();
