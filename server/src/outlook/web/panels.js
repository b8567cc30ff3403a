// The panels beside the talk, which lie over it where the window is narrow.

import { $ } from "./dom.js";

const PANELS = ["side", "people"];

function isShown(name) {
  const panel = $(name);
  return getComputedStyle(panel).visibility === "visible" && panel.getBoundingClientRect().width > 0;
}

function toggle(name, changed) {
  const wasShown = isShown(name);
  const opener = $(`${name}-open`);
  $("hall").dataset[name] = wasShown ? "closed" : "open";
  opener.setAttribute("aria-expanded", String(!wasShown));
  if (wasShown) opener.focus();
  else $(name).querySelector("button:not(.narrow), input")?.focus();
  changed();
}

/** As they are when nobody has asked for them. */
export function closePanels(names = PANELS) {
  for (const name of names) {
    delete $("hall").dataset[name];
    $(`${name}-open`).setAttribute("aria-expanded", "false");
  }
}

/** Makes their buttons work; `changed` is called when one has opened or closed. */
export function preparePanels(changed) {
  for (const name of PANELS) {
    for (const button of [`${name}-open`, `${name}-close`]) {
      $(button).addEventListener("click", () => toggle(name, changed));
    }
  }
  $("shade").addEventListener("click", () => closePanels());
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) closePanels();
  });
}
