// Elements without markup: whatever somebody else wrote becomes text, never HTML.

export const $ = (id) => document.getElementById(id);

/** An element with attributes, listeners (`onclick: …`) and children: elements or texts. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Sets a text where it is another one: what has not changed is not announced again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const encoder = new TextEncoder();

/** Size of a text as the server counts it. */
export const bytesOf = (text) => encoder.encode(text).length;

/** Random letters; also where the page is not served from a secure origin. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(15));
  return btoa(String.fromCharCode(...bytes));
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const timeOf = (ms) => clock.format(ms);
export const dayOf = (ms) => calendar.format(ms);
export const momentOf = (ms) => exact.format(ms);
export const countOf = (number) => number.toLocaleString("en");

/** "ann", "ann and bob", "ann, bob and 14 others". */
export function listOf(names, most = 3) {
  if (names.length <= 1) return names.join("");
  const isLong = names.length > most;
  const shown = isLong ? names.slice(0, most - 1) : names.slice(0, -1);
  const last = isLong ? `${countOf(names.length - shown.length)} others` : names[names.length - 1];
  return `${shown.join(", ")} and ${last}`;
}
