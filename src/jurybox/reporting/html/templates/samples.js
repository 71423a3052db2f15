"use strict";
// Lists the samples in the report, some at a time.
(async () => {
  const section = document.getElementById("all-samples");
  const packed = section.querySelector("[data-samples]").textContent;
  const list = section.querySelector("[data-list]");
  const status = section.querySelector("[role=status]");
  const search = section.querySelector("input");
  const only = section.querySelector("select");
  const more = section.querySelector("button");
  const asked = section.querySelector("[data-asked]");
  const page = 25;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const samples = JSON.parse(await new Response(stream).text());
  // The worst first, as in the viewer.
  samples.sort((a, b) => a.place - b.place);
  let query = new URLSearchParams();
  let found = samples;
  let shown = 0;
  let wanted = "";
  // Paper has no "Show more", and all texts of a large run would fill thousands of pages.
  const printed = 500;
  const printedWhole = 50;

  // A sample without a score neither passes nor fails a rule.
  const words = { unscored: "not scored", target_error: "no response" };
  const plain = (flag) => words[flag] ?? flag.replaceAll("_", " ");

  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // HTML that our own renderer made from Markdown; it lets no tag in a text through.
  function laidOut(html, name) {
    const made = element(name, undefined, "document");
    made.innerHTML = html;
    return made;
  }

  function card(sample) {
    const made = element("details", undefined, "card");
    made.id = `sample-${sample.number}`;
    const summary = element("summary");
    if (sample.score !== null) summary.append(element("span", sample.shown, "card-value"), " ");
    summary.append(element("span", sample.id, "card-name"), " ");
    const lacking = sample.flags.find((flag) => flag in words);
    const color = !sample.passed ? "fails" : sample.confirmed || sample.disputed ? "waits" : "passes";
    if (lacking || sample.passed !== null) summary.append(element("span", words[lacking] ?? (sample.passed ? "passed" : "failed"), `badge ${color}`), " ");
    for (const [flag, decided] of Object.entries(sample.reasons)) {
      const tone = flag === "safety" && !decided.startsWith("dismissed") ? "fails" : "warned";
      if (!(flag in words)) summary.append(element("span", decided ? `${plain(flag)}, ${decided}` : plain(flag), `badge ${tone}`), " ");
    }
    const [, task, html] = sample.texts[0];
    summary.append(element("span", (html === null ? task : laidOut(html, "span").textContent).slice(0, 160), "card-why"));
    if (sample.failed) summary.append(element("span", sample.failed, "card-why bad"));
    if (sample.why) summary.append(element("span", sample.why, "card-why"));
    const found = wanted && !summary.textContent.toLowerCase().includes(wanted) && passage(sample);
    if (found) summary.append(element("span", found, "card-why"));
    mark(summary);
    made.append(summary);
    made.addEventListener("toggle", () => addTexts(made, sample));
    return made;
  }

  // The words around the first match in a text that is folded away.
  function passage(sample) {
    const [title, text] = sample.texts.find(([, each]) => each.toLowerCase().includes(wanted)) ?? ["", ""];
    const at = text.toLowerCase().indexOf(wanted);
    return title && `${title}: ${at > 60 ? "…" : ""}${text.slice(Math.max(at - 60, 0), at + wanted.length + 60)}`;
  }

  function mark(root) {
    if (wanted === "") return;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (let node of nodes) {
      // Some uppercase letters become longer in lowercase, which would shift positions.
      if (node.data.toLowerCase().length !== node.data.length) continue;
      for (let at = node.data.toLowerCase().indexOf(wanted); at >= 0; at = node.data.toLowerCase().indexOf(wanted)) {
        const hit = node.splitText(at);
        node = hit.splitText(wanted.length);
        const made = element("mark");
        hit.replaceWith(made);
        made.append(hit);
      }
    }
  }

  function addTexts(made, sample) {
    if (made.querySelector("dl")) return;
    const side = element("dl", undefined, "vote-reasoning side texts");
    const rest = element("dl", undefined, "vote-reasoning side");
    for (const [title, text, html] of sample.texts) {
      const body = html === null ? element("dd", text, "whole-text") : laidOut(html, "dd");
      const beside = /^(task|response( [AB])?|reference)$/.test(title);
      const group = element("div");
      group.append(element("dt", title), body);
      (beside ? side : rest).append(group);
    }
    mark(side);
    mark(rest);
    made.append(side, ...(rest.hasChildNodes() ? [rest] : []));
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
      ["scenario", "demographic", "winner"].every((name) => !query.has(name) || sample[name] === query.get(name) ||
        (name === "winner" && query.get(name) === "any" && sample.winner !== null)) &&
      (!query.has("below") || value < Number(query.get("below"))) &&
      (!query.has("above") || value > Number(query.get("above"))) &&
      (!query.has("metric") || (value >= Number(query.get("low") ?? -Infinity) && value <= Number(query.get("high") ?? Infinity)));
  }

  // A reviewed sample no longer needs a review, though its flag stays.
  function kinds(sample) {
    const reviewed = sample.open.length > 0 ? ["to_review"] : sample.done.length > 0 ? ["reviewed"] : [];
    return [...sample.flags.filter((flag) => flag !== "needs_review"), ...reviewed];
  }

  function meetsReview(sample, wanted) {
    if (wanted === "done" && !query.has("flag")) return sample.done.length > 0 && sample.open.length === 0;
    if (wanted === "open" || wanted === "done") return query.has("flag") ? sample[wanted].includes(query.get("flag")) : sample.open.length > 0;
    return wanted === null || sample[wanted];
  }

  function described() {
    const conditions = [];
    for (const [name, value] of query) {
      if (name === "flag") conditions.push(plain(value));
      else if (name === "review") conditions.push({ open: "to be reviewed", awaiting: "awaiting review", confirmed: "safety concerns confirmed by reviewers", disputed: "safety concerns that reviewers disagree about" }[value]);
      else if (name === "high") conditions.push(`${query.get("metric")} <= ${value}`);
      else if (name === "below") conditions.push(`${query.get("metric")} < ${value}`);
      else if (name === "above") conditions.push(`${query.get("metric")} > ${value}`);
      else if (name === "low") conditions.push(`${query.get("metric")} >= ${value}`);
      else if (name !== "metric" && name !== "sort" && name !== "descending") conditions.push(`${name} ${value}`);
    }
    return conditions.length ? `Only ${conditions.join(", ")}` : `By ${query.get("sort")?.split(":")[1]}, the highest first`;
  }

  function find() {
    wanted = search.value.toLowerCase();
    asked.hidden = query.size === 0;
    asked.querySelector("strong").textContent = described();
    found = samples.filter((sample) => meets(sample) &&
      (only.value === "" || kinds(sample).includes(only.value)) &&
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

  for (const flag of [...new Set(samples.flatMap(kinds))].sort()) {
    const option = element("option", plain(flag));
    option.value = flag;
    only.append(option);
  }
  search.addEventListener("input", find);
  only.addEventListener("change", () => {
    query.delete("flag");
    find();
  });
  more.addEventListener("click", showMore);
  addEventListener("beforeprint", () => {
    while (shown < Math.min(found.length, printed)) showMore();
    const failing = found.slice(0, shown).filter((sample) => sample.passed !== true).slice(0, printedWhole);
    for (const sample of failing) addTexts(document.getElementById(`sample-${sample.number}`), sample);
    const paper = section.querySelector("[data-paper]");
    paper.hidden = false;
    paper.textContent = `${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} samples are printed, the worst first; the texts of ${failing.length} that don't pass are included.`;
  });
  addEventListener("afterprint", () => {
    section.querySelector("[data-paper]").hidden = true;
  });
  addEventListener("hashchange", follow);
  section.querySelector(".filters").hidden = false;
  find();
  follow();
})();
