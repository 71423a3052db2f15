"use strict";
// Finds samples in the report, and shows their cards, some at a time.
(async () => {
  const section = document.getElementById("all-samples");
  const part = (selector) => section.querySelector(selector);
  const list = part("[data-list]");
  const status = part("[role=status]");
  const search = part("input");
  const only = part("select");
  const more = part("button");
  const asked = part("[data-asked]");
  const paper = part("[data-paper]");
  const page = 25;
  const bytes = Uint8Array.from(atob(part("[data-samples]").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  // The worst first, as in the viewer.
  const samples = JSON.parse(await new Response(stream).text());
  let query = new URLSearchParams();
  let found = samples;
  let shown = 0;
  let wanted = "";
  // Paper has no "Show more", and all texts of a large run would fill thousands of pages.
  const printed = 500;
  const printedWhole = 50;

  const named = JSON.parse(asked.dataset.words);
  const plain = (name) => [...only.options].find((each) => each.value === name)?.dataset.words ?? named[name] ?? name.replaceAll("_", " ");

  // The words of a card that differ between samples, in lowercase.
  const characters = { amp: "&", lt: "<", gt: ">", quot: '"', "#34": '"', "#39": "'" };
  const words = (sample) => sample.words ??= sample.card.replace(/<(\w+) data-label[^]*?<\/\1>|<[^>]*>/g, "")
    .replace(/&(amp|lt|gt|quot|#34|#39);/g, (_, name) => characters[name]).toLowerCase();
  const sorted = () => (query.get("sort") ?? "").split(":")[1];
  const says = (part) => part.textContent.toLowerCase().includes(wanted);

  function card(sample) {
    const holder = document.createElement("template");
    // Our own templates made this HTML; they let no tag in a text through.
    holder.innerHTML = sample.card;
    const made = holder.content.firstElementChild;
    const line = made.querySelector("summary");
    const reason = line.querySelector(".card-why");
    const metric = sorted() ?? query.get("metric");
    const value = sample.metrics[metric];
    if (value !== undefined) add(line, `${plain(metric)}: ${value.toLocaleString("en", { maximumFractionDigits: 3 })}`, reason);
    for (const part of made.querySelectorAll(".texts > div")) {
      const [title, text] = [part.firstChild.textContent, part.lastChild.textContent];
      const side = / [AB]$/.test(title) ? `${title.slice(-1)}: ` : "";
      if (title !== "reference") add(line, side + text.slice(0, 160) + (text.length > 160 ? "…" : ""), reason);
    }
    if (wanted !== "") point(made, line);
    return made;
  }

  function add(line, text, before = null) {
    const made = document.createElement("span");
    made.className = "card-why";
    made.textContent = text;
    line.insertBefore(made, before);
  }

  // Marks the searched words, and quotes the words around them if the card's line lacks them.
  function point(made, line) {
    const part = says(line) ? null : [...made.querySelectorAll("dd, td:not([data-label])")].find(says);
    if (part) {
      const text = part.textContent;
      const at = text.toLowerCase().indexOf(wanted);
      const title = part.closest("tr, dl > div").firstElementChild.textContent;
      add(line, `${title}: ${at > 60 ? "…" : ""}${text.slice(Math.max(at - 60, 0), at + wanted.length + 60)}`);
    }
    for (const folded of made.querySelectorAll("details")) folded.open = says(folded);
    const walker = document.createTreeWalker(made, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (let node of nodes) {
      // Some uppercase letters become longer in lowercase, which would shift positions.
      if (node.data.toLowerCase().length !== node.data.length) continue;
      for (let at = node.data.toLowerCase().indexOf(wanted); at >= 0; at = node.data.toLowerCase().indexOf(wanted)) {
        const hit = node.splitText(at);
        node = hit.splitText(wanted.length);
        const mark = document.createElement("mark");
        hit.replaceWith(mark);
        mark.append(hit);
      }
    }
  }

  function showMore() {
    const next = found.slice(shown, shown + page);
    shown += next.length;
    const total = `${samples.length.toLocaleString("en")} samples${status.dataset.within ?? ""}`;
    const match = found.length === samples.length ? total : `${found.length.toLocaleString("en")} of ${total}`;
    status.textContent = found.length === 0 ? `None of ${total} matches`
      : shown < found.length ? `${match}, the first ${shown} are shown` : match;
    more.hidden = shown === found.length;
    list.append(...next.map(card));
  }

  // Links of the report ask for samples as those of the viewer do: flag=failed&metric=tone&high=2
  function meets(sample) {
    return (!query.has("flag") || sample.flags.includes(query.get("flag"))) &&
      (!query.has("review") || meetsReview(sample, query.get("review"))) &&
      (!query.has("winner") || sample.winner === query.get("winner") || (query.get("winner") === "any" && sample.winner !== null));
  }

  // What the menu leaves as it is.
  function meetsOthers(sample) {
    const value = sample.metrics[query.get("metric")];
    return (wanted === "" || words(sample).includes(wanted)) &&
      ["scenario", "demographic"].every((name) => !query.has(name) || sample[name] === query.get(name)) &&
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
    const asks = (name) => query.get(name) ?? "";
    const metric = plain(asks("metric"));
    const meant = named[`${asks("metric")}=${asks("low")},${asks("high")}`];
    const conditions = meant ? [meant] : [];
    for (const [name, value] of query) {
      if (meant && ["low", "high"].includes(name)) continue;
      if (name === "flag" || name === "review") conditions.push(plain(value));
      else if (name === "high") conditions.push(`${metric} <= ${value}`);
      else if (name === "below") conditions.push(`${metric} < ${value}`);
      else if (name === "above") conditions.push(`${metric} > ${value}`);
      else if (name === "low") conditions.push(`${metric} >= ${value}`);
      else if (name !== "metric" && name !== "sort" && name !== "descending") conditions.push(`${name} ${value}`);
    }
    const only = conditions.length ? `Only ${conditions.join(", ")}` : sorted() ? "" : `Only with ${metric}`;
    const order = sorted() && `${plain(sorted())}, the ${query.get("descending") === "true" ? "highest" : "lowest"} first`;
    return order ? `${only ? `${only}, by` : "By"} ${order}` : only;
  }

  function find() {
    wanted = search.value.toLowerCase();
    asked.hidden = query.size === 0;
    asked.querySelector("strong").textContent = described();
    const others = samples.filter(meetsOthers);
    const within = (name) => others.filter((sample) => [...sample.flags, ...sample.states, sample.winner].includes(name));
    for (const each of only.options) if (each.value !== "") each.textContent = `${each.dataset.words} (${within(each.value).length.toLocaleString("en")})`;
    found = (only.value === "" ? others : within(only.value)).filter(meets);
    part("h2 small").hidden = Boolean(sorted());
    if (sorted()) {
      const sign = query.get("descending") === "true" ? -1 : 1;
      const place = (sample) => sign * (sample.metrics[sorted()] ?? sign * Infinity);
      found.sort((a, b) => place(a) - place(b) || 0);
    }
    list.replaceChildren();
    shown = 0;
    showMore();
  }

  function follow() {
    const link = /^#all-samples\??(.*)$/.exec(location.hash);
    if (link) {
      query = new URLSearchParams(link[1]);
      search.value = "";
      const chosen = ["flag", "review", "winner"].filter((name) => query.has(name));
      only.value = chosen.length === 1 ? query.get(chosen[0]) : "";
      if (only.selectedIndex < 0) only.value = "";
      find();
      section.scrollIntoView();
      return;
    }
    const sample = samples.find((each) => location.hash === `#sample-${each.number}`);
    if (!sample) {
      if (location.hash.startsWith("#sample-")) status.textContent = "This sample is not in this file.";
      return;
    }
    const target = document.getElementById(`sample-${sample.number}`) ?? card(sample);
    if (!target.isConnected) list.prepend(target);
    target.open = true;
    target.scrollIntoView();
  }

  search.addEventListener("input", find);
  only.addEventListener("change", () => {
    for (const name of ["flag", "review", "winner"]) query.delete(name);
    find();
  });
  more.addEventListener("click", showMore);
  // As in the viewer; Enter opens the sample that has the focus.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
    const opened = event.key === "Escape" && event.target.closest(".card[open]");
    if (event.key === "/") search.focus();
    else if (opened) {
      opened.open = false;
      opened.querySelector("summary").focus();
    } else if (event.key === "j" || event.key === "k") {
      const lines = () => [...list.querySelectorAll(":scope > .card > summary")];
      const at = lines().indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      if (at === lines().length) showMore();
      lines()[Math.max(at, 0)]?.focus();
    } else return;
    event.preventDefault();
  });
  addEventListener("beforeprint", () => {
    while (shown < Math.min(found.length, printed)) showMore();
    const asks = [query.size ? described() : "", only.value && ![...query.values()].includes(only.value) ? `Only ${plain(only.value)}` : "", wanted ? `“${search.value}”` : ""];
    const filtered = asks.filter(Boolean).join(", ");
    const cards = [...list.children];
    // What a release waits for matters more than what a broken judge left without a score.
    const urgent = (sample) => sample.flags.includes("safety") || sample.states.includes("awaiting");
    const first = new Set(found.filter(urgent).map((sample) => `sample-${sample.number}`));
    const whole = cards.filter((each) => first.has(each.id) || !each.querySelector("summary .passes"))
      .sort((a, b) => first.has(b.id) - first.has(a.id)).slice(0, printedWhole);
    for (const each of cards) each.classList.toggle("brief", !each.open && !whole.includes(each));
    paper.hidden = false;
    paper.textContent = `${filtered && `${filtered}: `}${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} samples are printed${sorted() ? "" : ", the worst first"}, ${whole.length} of them with their texts.`;
  });
  addEventListener("afterprint", () => {
    paper.hidden = true;
  });
  addEventListener("hashchange", follow);
  for (const each of section.querySelectorAll(".filters, .unprinted")) each.hidden = false;
  find();
  follow();
  // The first search would take long if it had to find the words of every sample.
  const prepare = (at) => setTimeout(() => {
    samples.slice(at, at + 100).forEach(words);
    if (at < samples.length) prepare(at + 100);
  });
  prepare(0);
})();
