// Keys for the review queue. Every page of it works without this file; nothing is decided here.
"use strict";

(() => {
  const desk = document.querySelector("[data-desk]");
  if (!desk) {
    return;
  }
  const form = desk.querySelector("form[data-verdict]");
  const notice = desk.querySelector("[data-notice]");
  const keys = desk.querySelector("details[data-keys]");
  const groups = form ? Array.from(form.querySelectorAll("[data-group]")) : [];
  const fields = form ? Array.from(form.querySelectorAll("input:not([type=hidden]), textarea")) : [];
  // The key of this tab's unsubmitted answers: the sample, the reviewer and the last action.
  const draft = form && `draft ${form.action} ${form.reviewer.value} ${form.basis.value}`;
  let current = null;
  let pointing = false;
  let gone = false;
  let leaving = false;
  let unsaved = false; // answers that the server doesn't have
  let warned = ""; // the action that was tried once in spite of them
  let correcting = false; // the page opened with every answer of an earlier review

  function say(text, warning = false) {
    notice.textContent = text;
    notice.classList.toggle("warned", warning);
    notice.classList.remove("unseen");
    fold();
  }

  // A radio group or a number field is answered once its value is valid for the browser.
  function answered(group) {
    const number = group.querySelector("input[data-number]");
    const radio = group.querySelector("input[type=radio]:checked");
    if (number && number.value !== "") {
      return number.validity.valid;
    }
    return radio !== null;
  }

  function open() {
    return groups.filter((group) => !group.hasAttribute("data-optional") && !answered(group));
  }

  function title(group) {
    return group.getAttribute("data-title");
  }

  function mark(group) {
    if (current) {
      current.removeAttribute("data-current");
    }
    current = group;
    if (current) {
      current.setAttribute("data-current", "");
    }
  }

  // In a form that is too long to be seen at once, only the current question is explained.
  function fold() {
    if (form && form.scrollHeight > Math.min(form.clientHeight, window.innerHeight)) {
      form.setAttribute("data-folded", "");
    }
  }

  // No choice has the focus, so that Space scrolls; Tab goes to the choices.
  function turnTo(group) {
    mark(group);
    const number = group.querySelector("input[data-number]");
    (number || group).focus();
    number?.select(); // so that what is typed replaces it
    group.scrollIntoView({ block: "nearest" });
  }

  function what(input) {
    return input.getAttribute("data-label") || input.value;
  }

  function goOn(done) {
    const place = groups.indexOf(current);
    const left = open();
    const later = groups
      .slice(place + 1)
      .filter((group) => correcting || !answered(group));
    const next = left.find((group) => groups.indexOf(group) > place) || left[0] || later[0];
    if (next) {
      const end = left.length > 0 ? "" : ", or Enter submits";
      say(`${done}. Next: ${title(next)}${end}.`);
      turnTo(next);
    } else {
      turnToSubmit();
      say(`${done}. Everything is scored: Enter submits.`);
    }
  }

  // No question is marked, so that a key changes no answer; Tab goes to the button.
  function turnToSubmit() {
    mark(null);
    form.querySelector(".actions").focus();
  }

  function choose(input) {
    mark(input.closest("[data-group]"));
    input.checked = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    goOn(`${title(current)}: ${what(input)}`);
  }

  function submit() {
    const left = open();
    if (left.length > 0) {
      turnTo(left[0]);
      say(`Still open: ${left.map(title).join(", ")}.`, true);
    } else {
      leave(() => form.requestSubmit(form.querySelector("button[data-submit]")));
    }
  }

  // One key press does one thing, even if the server takes a while to respond.
  function leave(act) {
    if (!gone) {
      gone = true;
      act();
    }
  }

  function press(name) {
    const target = desk.querySelector(`[data-does=${name}]`);
    if (!target || target.disabled) {
      return false;
    }
    if (!warns(name)) {
      leave(() => target.click());
    }
    return true;
  }

  // A reviewer who skips or undoes with unsaved answers is warned once; Enter doesn't lose them.
  function warns(name) {
    const does = { skip: "Skip", undo: "Undo", back: "Go back" }[name];
    if (!unsaved || warned === name || !does) {
      return false;
    }
    warned = name;
    const left = open();
    const again = `${does} again to leave without them.`;
    if (left.length > 0) {
      turnTo(left[0]);
      say(`Your answers aren't saved. Still open: ${left.map(title).join(", ")}. ${again}`, true);
    } else {
      turnToSubmit();
      say(`Your answers aren't saved. Enter submits them. ${again}`, true);
    }
    return true;
  }

  function keep() {
    unsaved = true;
    warned = "";
    sessionStorage.setItem(draft, JSON.stringify(fields.map((field) => field[held(field)])));
  }

  function held(field) {
    return field.type === "radio" ? "checked" : "value";
  }

  function discard() {
    unsaved = false;
    sessionStorage.removeItem(draft);
  }

  // The next page drops a draft that was sent; without a next page, it is kept.
  function dropSent() {
    const sent = sessionStorage.getItem("sent");
    if (sent && sent !== draft) {
      sessionStorage.removeItem(sent);
    }
    sessionStorage.removeItem("sent");
  }

  function restore() {
    const kept = form && sessionStorage.getItem(draft);
    if (!kept) {
      return "";
    }
    const given = JSON.parse(kept);
    fields.forEach((field, place) => {
      field[held(field)] = given[place];
    });
    unsaved = true;
    return "Your answers are back; they aren't submitted yet.";
  }

  // Enter doesn't silently leave a flag undecided.
  function decide() {
    const flag = desk.querySelector("[data-undecided]");
    if (flag) {
      flag.focus();
      flag.scrollIntoView({ block: "nearest" });
      say("The safety flag is undecided: y confirms, o dismisses, n leaves it undecided.", true);
    }
    return flag !== null;
  }

  function toggleKeys() {
    if (!keys) {
      return; // every key is shown on its button
    }
    keys.open = !keys.open;
    form?.removeAttribute("data-folded"); // folded again below if it is still too long
    say(keys.open ? "The keys are shown." : "The keys are hidden.");
    notice.classList.add("unseen"); // for screen readers; the list itself is visible
  }

  function comment() {
    const field = form && form.querySelector("textarea");
    if (!field) {
      return false;
    }
    field.focus();
    say("Write a comment; Escape leaves it, Control and Enter submit.");
    return true;
  }

  function choiceFor(key) {
    const inputs = groups.flatMap((group) => Array.from(group.querySelectorAll("input[data-key]")));
    const found = inputs.filter((input) => input.getAttribute("data-key") === key);
    const here = found.find((input) => current && current.contains(input));
    // A letter that only one question has answers that question; a digit is for the marked one.
    return here || (found.length === 1 && !/^[0-9]$/.test(key) ? found[0] : null);
  }

  function typing(element) {
    return (
      element.tagName === "TEXTAREA" ||
      element.tagName === "SELECT" ||
      element.isContentEditable ||
      (element.tagName === "INPUT" && !["radio", "checkbox", "button", "submit"].includes(element.type))
    );
  }

  // Enter on a button, a link or the summary of a folded part does what it always does.
  function hasOwnEnter(element) {
    return ["BUTTON", "A", "SUMMARY"].includes(element.tagName);
  }

  function inField(event) {
    if (event.key === "Escape" && form) {
      event.preventDefault();
      const group = open()[0];
      if (group) {
        turnTo(group);
        say(`Next: ${title(group)}.`);
      } else {
        turnToSubmit();
        say("Everything is scored: Enter submits.");
      }
    } else if (event.key === "Enter" && event.target.hasAttribute("data-number")) {
      event.preventDefault();
      if (answered(current)) {
        goOn(`${title(current)}: ${event.target.value}`);
      } else {
        say(`${title(current)}: ${event.target.validationMessage || "a number is needed"}`, true);
      }
    }
  }

  // Where the page doesn't scroll, the sample does. In fields, Space, Home and End do other things.
  function scrolls(event) {
    const pages = { PageDown: 0.9, PageUp: -0.9, " ": event.shiftKey ? -0.9 : 0.9, Home: -1e6, End: 1e6 };
    const own = event.key.startsWith("Page") ? "textarea" : "input, textarea, button, summary";
    const long = document.documentElement.scrollHeight > window.innerHeight;
    if (!form || long || !pages[event.key] || event.target.closest(own)) {
      return false;
    }
    const sample = desk.querySelector(".shown");
    sample.scrollBy(0, pages[event.key] * sample.clientHeight);
    return true;
  }

  function onKey(event) {
    if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
      event.preventDefault();
      submit();
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) {
      return;
    }
    if (scrolls(event)) {
      event.preventDefault();
      return;
    }
    // A letter can't be part of a number, so its shortcut works in number fields too.
    if (typing(event.target) && !(event.target.hasAttribute("data-number") && /^[^-+.,e0-9]$/i.test(event.key))) {
      inField(event);
      return;
    }
    if (event.repeat) {
      if (event.key === "Enter") {
        event.preventDefault();
      }
      return;
    }
    if (act(event)) {
      event.preventDefault();
    }
  }

  function act(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const choice = choiceFor(key);
    if (choice) {
      choose(choice);
      return true;
    }
    if (/^[-0-9.]$/.test(key) && current && current.querySelector("input[data-number]")) {
      current.querySelector("input[data-number]").focus(); // and the key is typed into it
      return false;
    }
    if (/^[0-9]$/.test(key) && current) {
      say(`${title(current)} has no answer ${key}; nothing was changed.`, true);
      return true;
    }
    if (key === "Enter") {
      if (hasOwnEnter(event.target)) {
        return false;
      }
      if (form) {
        submit();
        return true;
      }
      return decide() || press("next");
    }
    switch (key) {
      case "y":
        return press("confirm");
      case "o":
        return press("dismiss");
      case "n":
        return press("next") || press("skip") || press("back");
      case "s":
        return press("skip") || press("back");
      case "u":
        return press("back") || press("undo");
      case "Escape":
        return press("back");
      case "c":
        return comment();
      case "?":
        toggleKeys();
        return true;
      default:
        return false;
    }
  }

  document.addEventListener("keydown", onKey);
  // Marking a question may move the others, so a pressed mouse button marks none until it clicks.
  ["mousedown", "mouseup"].forEach((name) => {
    document.addEventListener(name, () => {
      pointing = name === "mousedown";
    });
  });
  ["focusin", "click"].forEach((name) => {
    desk.addEventListener(name, (event) => {
      const group = event.target.closest("[data-group]");
      if (group && !pointing) {
        mark(group);
      }
    });
  });
  desk.addEventListener("click", (event) => {
    const target = event.target.closest("[data-does=skip], [data-does=undo], form.verdict [data-does=back]");
    if (target && warns(target.getAttribute("data-does"))) {
      event.preventDefault();
    } else if (target && form) {
      discard();
    }
  });
  // A number together with "unclear" would be two answers.
  desk.addEventListener("input", (event) => {
    const group = event.target.closest("[data-group]");
    if (group && event.target.hasAttribute("data-number") && event.target.value !== "") {
      group.querySelectorAll("input[type=radio]").forEach((radio) => {
        radio.checked = false;
      });
    }
    if (form && form.contains(event.target)) {
      keep();
    }
  });
  desk.addEventListener("change", (event) => {
    const group = event.target.closest("[data-group]");
    const number = group && group.querySelector("input[data-number]");
    if (number && event.target.type === "radio" && event.target.checked) {
      number.value = "";
    }
    if (form && form.contains(event.target)) {
      keep();
    }
  });
  desk.addEventListener("submit", (event) => {
    if (event.target === form && open().length > 0) {
      event.preventDefault();
      submit();
      return;
    }
    leaving = true;
    if (event.target === form) {
      sessionStorage.setItem("sent", draft);
    }
  });
  window.addEventListener("beforeunload", (event) => {
    if (unsaved && !leaving) {
      event.preventDefault();
    }
  });
  // After the browser's Back button the keys still work.
  window.addEventListener("pageshow", () => {
    gone = false;
    leaving = false;
  });

  dropSent();
  correcting = open().length === 0 && groups.some((group) => !group.hasAttribute("data-optional"));
  const back = restore();
  if (back) {
    say(back, true);
  }
  fold();
  const first = form && (form.querySelector("[data-fault]") || (correcting ? groups[0] : null));
  if (first) {
    turnTo(first);
    notice.textContent += ` A key changes ${title(first)} and selects the next; Enter submits.`;
  } else {
    // Marked and not focused, so that a screen reader starts at the top of the page.
    mark(open()[0] || null);
  }
  // Screen readers don't read text that is there when a page opens, only text that is added later.
  if (notice.textContent.trim()) {
    const text = notice.textContent;
    notice.textContent = "";
    window.setTimeout(() => {
      // If a quick reviewer has pressed a key by then, its own notice is read instead.
      if (!notice.textContent) {
        say(text.trim(), Boolean(back));
      }
    }, 150);
  }
})();
