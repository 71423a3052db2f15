// Keys for the review queue. Every page of it works without this file; nothing is decided here.
"use strict";

(() => {
  const desk = document.querySelector("[data-desk]");
  if (!desk) {
    return;
  }
  const form = desk.querySelector("form[data-verdict]");
  const said = desk.querySelector("[data-said]");
  const keys = desk.querySelector("details[data-keys]");
  const groups = form ? Array.from(form.querySelectorAll("[data-group]")) : [];
  let current = null;
  let gone = false;

  function say(text) {
    if (said) {
      said.textContent = text;
    }
  }

  // A radio group or a number field holds an answer once it has one that the browser finds valid.
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

  function turnTo(group) {
    mark(group);
    const target =
      group.querySelector("input[data-number]") ||
      group.querySelector("input[type=radio]:checked") ||
      group.querySelector("input[type=radio]");
    if (target) {
      target.focus();
      group.scrollIntoView({ block: "nearest" });
    }
  }

  function what(input) {
    return input.getAttribute("data-said") || input.value;
  }

  function goOn(done) {
    const place = groups.indexOf(current);
    const left = open();
    const later = groups.filter((group) => groups.indexOf(group) > place && !answered(group));
    const next = left.find((group) => groups.indexOf(group) > place) || left[0] || later[0];
    if (next) {
      turnTo(next);
      const end = left.length > 0 ? "" : ", or Enter submits";
      say(`${done}. Next: ${title(next)}${end}.`);
    } else {
      const submit = form.querySelector("button[data-submit]");
      mark(null); // a key must not change the last answer
      submit.focus();
      say(`${done}. All is scored: Enter submits.`);
    }
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
      say(`Still open: ${left.map(title).join(", ")}.`);
    } else {
      leave(() => form.requestSubmit(form.querySelector("button[data-submit]")));
    }
  }

  // One key press does one thing, also where the answer takes a while.
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
    leave(() => target.click());
    return true;
  }

  // Enter leaves no flag undecided without a word.
  function decide() {
    const flag = desk.querySelector("[data-undecided]");
    if (flag) {
      flag.focus();
      flag.scrollIntoView({ block: "nearest" });
      say("The safety flag is undecided: y confirms, o dismisses, n leaves it undecided.");
    }
    return flag !== null;
  }

  function toggleKeys() {
    keys.open = !keys.open;
    keys.querySelector("summary").focus();
    say(keys.open ? "The keys are shown." : "The keys are hidden.");
  }

  function comment() {
    const field = form && form.querySelector("textarea");
    if (!field) {
      return false;
    }
    field.focus();
    say("Write a comment; Escape goes back to the scores.");
    return true;
  }

  function choiceFor(key) {
    const inputs = groups.flatMap((group) => Array.from(group.querySelectorAll("input[data-key]")));
    const found = inputs.filter((input) => input.getAttribute("data-key") === key);
    const here = found.find((input) => current && current.contains(input));
    return here || (found.length === 1 ? found[0] : null); // a key of one question alone answers it
  }

  function typing(element) {
    return (
      element.tagName === "TEXTAREA" ||
      element.tagName === "SELECT" ||
      element.isContentEditable ||
      (element.tagName === "INPUT" && !["radio", "checkbox", "button", "submit"].includes(element.type))
    );
  }

  // Enter on a button, a link or a heading of something folded does what it always does.
  function hasOwnEnter(element) {
    return ["BUTTON", "A", "SUMMARY"].includes(element.tagName);
  }

  function inField(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      const group = event.target.closest("[data-group]") || open()[0] || groups[0];
      event.target.blur();
      if (group && !group.contains(event.target)) {
        turnTo(group);
      }
    } else if (event.key === "Enter" && event.target.hasAttribute("data-number")) {
      event.preventDefault();
      if (answered(current)) {
        goOn(`${title(current)}: ${event.target.value}`);
      } else {
        say(`${title(current)}: ${event.target.validationMessage || "a number is needed"}`);
      }
    }
  }

  function onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) {
      return;
    }
    if (typing(event.target)) {
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
        return press("next") || press("skip");
      case "s":
        return press("skip");
      case "u":
        return press("undo");
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
  desk.addEventListener("focusin", (event) => {
    const group = event.target.closest("[data-group]");
    if (group) {
      mark(group);
    }
  });
  // A number beside "unclear" would be two answers.
  desk.addEventListener("input", (event) => {
    const group = event.target.closest("[data-group]");
    if (group && event.target.hasAttribute("data-number") && event.target.value !== "") {
      group.querySelectorAll("input[type=radio]").forEach((radio) => {
        radio.checked = false;
      });
    }
  });
  desk.addEventListener("change", (event) => {
    const group = event.target.closest("[data-group]");
    const number = group && group.querySelector("input[data-number]");
    if (number && event.target.type === "radio" && event.target.checked) {
      number.value = "";
    }
  });
  // After the browser's Back button the keys still work.
  window.addEventListener("pageshow", () => {
    gone = false;
  });

  // Marked and not focused, so that a screen reader starts at the top of the page.
  mark(open()[0] || groups[0] || null);
  // What is there when a page opens is not read out; what is put there later is.
  if (said && said.textContent.trim()) {
    const text = said.textContent;
    said.textContent = "";
    window.setTimeout(() => {
      // A quick reviewer has pressed a key meanwhile, and hears what that did.
      if (!said.textContent) {
        say(text.trim());
      }
    }, 150);
  }
})();
