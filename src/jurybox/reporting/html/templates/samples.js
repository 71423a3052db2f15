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

  const plain = (name) => [...only.options].find((each) => each.value === name)?.dataset.words ?? name.replaceAll("_", " ");

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
    const winner = sample.winner && (sample.winner === "tie" ? "tie" : `${sample.winner} wins`);
    if (sample.score !== null || winner) summary.append(element("span", sample.score === null ? winner : sample.shown, "card-value"), " ");
    summary.append(element("span", sample.id, "card-name"), " ");
    for (const [text, tone] of sample.badges) summary.append(element("span", text, `badge ${tone}`), " ");
    for (const [title, text, html] of sample.texts.filter(([each]) => /^(task|response( [AB])?)$/.test(each))) {
      const side = / [AB]$/.test(title) ? `${title.slice(-1)}: ` : "";
      const words = html === null ? text : laidOut(html, "span").textContent;
      summary.append(element("span", side + words.slice(0, 160) + (words.length > 160 ? "…" : ""), "card-why"));
    }
    if (sample.failed) summary.append(element("span", `fails ${sample.failed}`, "card-why bad"));
    if (sample.why) summary.append(element("span", sample.why, "card-why"));
    const found = wanted && !summary.textContent.toLowerCase().includes(wanted) && passage(sample);
    if (found) summary.append(element("span", found, "card-why"));
    mark(summary);
    made.append(summary);
    made.addEventListener("toggle", () => addTexts(made, sample));
    return made;
  }

  // Every text that the search looks at, with its title.
  function everything(sample) {
    return [
      ["id", sample.id],
      ...sample.texts,
      ...sample.criteria.flatMap(([name, score, , , opinions]) =>
        opinions.flatMap(([by, why]) => [[`votes on ${name}`, by], [`${name} ${score}`, why]])),
      ...sample.reviews.flatMap(([name, verdict, comment]) => [[name, verdict], [name, comment]]),
      ...sample.replies.map(([name, reply]) => [`reply of ${name}`, reply]),
    ];
  }

  const matching = (sample) => everything(sample).find(([, text]) => text.toLowerCase().includes(wanted));

  // The words around the first match in a text that is folded away.
  function passage(sample) {
    const [title, text] = matching(sample) ?? ["", ""];
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
    const parts = [side, rest, criteria(sample), reviews(sample), replies(sample)].filter((part) => part.hasChildNodes());
    parts.forEach(mark);
    made.append(...parts);
  }

  // A table that becomes a list on a narrow screen; a cell is a text or an element.
  function table(names, rows) {
    const made = element("table", undefined, "upright vote-reasoning");
    if (rows.length === 0) return made;
    const head = made.createTHead().insertRow();
    for (const name of names) head.append(element("th", name));
    const body = made.createTBody();
    for (const cells of rows) {
      const row = body.insertRow();
      cells.forEach((cell, at) => {
        const part = element(at ? "td" : "th");
        if (at) part.dataset.name = names[at].toLowerCase();
        part.append(cell);
        row.append(part);
      });
    }
    return made;
  }

  function criteria(sample) {
    // Criteria that share a reasoning show it once.
    const seen = new Map();
    const result = sample.winner === null ? "Score" : "Winner";
    return table(["Criterion", result, "Votes", "Confidence", "Reasoning"], sample.criteria.map(([name, score, votes, sure, opinions]) => {
      const why = element("div");
      for (const [by, text, html] of opinions) {
        const first = seen.get(text);
        if (first === undefined && text !== "") seen.set(text, name);
        if (by) why.append(element("small", by, "muted"));
        why.append(first !== undefined ? element("p", `as for ${first}`) : html === null ? element("p", text, "whole-text") : laidOut(html, "div"));
      }
      return [name, score, laidOut(votes, "div"), element("span", sure, { high: "good", moderate: "warn", low: "bad" }[sure]), why];
    }));
  }

  function reviews(sample) {
    return table(["Reviewer", "Verdict", "Comment"], sample.reviews);
  }

  function replies(sample) {
    // The table above has the reasoning already, so paper doesn't repeat it.
    const made = element("details", undefined, `vote-reasoning${sample.criteria.length ? " unprinted" : ""}`);
    if (sample.replies.length === 0) return made;
    made.append(element("summary", "The judges' replies"));
    const list = element("dl", undefined, "side");
    for (const [name, reply] of sample.replies) {
      const group = element("div");
      group.append(element("dt", name), element("dd", reply, "whole-text"));
      list.append(group);
    }
    made.append(list);
    made.open = wanted !== "" && sample.replies.some(([, reply]) => reply.toLowerCase().includes(wanted));
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
      (!query.has("review") || meetsReview(sample, query.get("review"))) &&
      ["scenario", "demographic", "winner"].every((name) => !query.has(name) || sample[name] === query.get(name) ||
        (name === "winner" && query.get(name) === "any" && sample.winner !== null)) &&
      (!query.has("below") || value < Number(query.get("below"))) &&
      (!query.has("above") || value > Number(query.get("above"))) &&
      (!query.has("metric") || (value >= Number(query.get("low") ?? -Infinity) && value <= Number(query.get("high") ?? Infinity)));
  }

  // With a flag, a review is open or done for that flag alone.
  function meetsReview(sample, state) {
    const flag = query.get("flag");
    return flag !== null && (state === "open" || state === "done") ? sample[state].includes(flag) : sample.states.includes(state);
  }

  function described() {
    const conditions = [];
    for (const [name, value] of query) {
      if (name === "flag" || name === "review") conditions.push(plain(value));
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
      (only.value === "" || sample.flags.includes(only.value) || sample.states.includes(only.value)) &&
      (wanted === "" || matching(sample)));
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
      only.value = query.get("flag") ?? query.get("review") ?? "";
      if (only.selectedIndex < 0) only.value = "";
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

  search.addEventListener("input", find);
  only.addEventListener("change", () => {
    query.delete("flag");
    query.delete("review");
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
