"use strict";
// Adds a button behind each command and id that copies it, if the browser allows that. An element that
// names an address gets one that copies the text there; of a shortened one, the title is copied.
(() => {
  if (!navigator.clipboard) return;

  const told = ({ dataset: { copy }, title, textContent }) => (copy ? fetch(copy).then((answer) => answer.text()) : Promise.resolve(title || textContent));

  function add(code) {
    const [button, about] = [document.createElement("button"), document.createElement("span")];
    const label = document.createTextNode("copy");
    about.textContent = ` ${code.textContent}`;
    about.className = "unseen";
    Object.assign(button, { type: "button", className: "copy" }).append(label, about);
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => {
      told(code).then((text) => navigator.clipboard.writeText(text)).then(() => { label.data = "copied"; }, () => button.remove());
    });
    button.addEventListener("blur", () => { label.data = "copy"; });
    code.after(" ", button);
  }

  const addAll = () => document.querySelectorAll("[data-copy]:not(:has(+ .copy))").forEach(add);
  addAll();
  // A run in progress replaces its panels.
  const run = document.getElementById("run");
  if (run) new MutationObserver(addAll).observe(run, { childList: true });
})();
