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

const SVG = "http://www.w3.org/2000/svg";
const DRAWINGS = {
  people: "M9 11a3.5 3.5 0 1 0 0-7a3.5 3.5 0 0 0 0 7M2.5 20c0-4 3-6 6.5-6s6.5 2 6.5 6M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5c2.200.8 3.5 2.700 3.5 5.5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  menu: "M4 6h16M4 12h16M4 18h16",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  reply: "M10 6L4 12l6 6M4 12h9c4 0 7 2 7 6",
  edit: "M4 20l1-4.5L16 4.5l3.5 3.5L8.5 19zM13.5 7l3.5 3.5",
  remove: "M4 6.5h16M9 6.5V4h6v2.5M6.5 6.5l1 13.5h9l1-13.5M10 10.5v6M14 10.5v6",
  smile: "M12 21a9 9 0 1 0 0-18a9 9 0 0 0 0 18M8 14.5c2 3 6 3 8 0M9 9.5v.1M15 9.5v.1",
};

/** A small drawing; what it stands for is said beside it. */
export function picture(name) {
  const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS(SVG, tag));
  for (const [key, value] of [["viewBox", "0 0 24 24"], ["class", "picture"], ["aria-hidden", "true"]]) svg.setAttribute(key, value);
  path.setAttribute("d", DRAWINGS[name]);
  svg.append(path);
  return svg;
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

/** The stamp by which throng finds its messages again (model/src/stamp.rs). */
const STAMP = /^~thr[\w-]{32}(?= |$)/;

/** Whether a text says nothing but a stamp. */
export const isStamp = (text) => STAMP.exec(text)?.[0] === text;

/** A text as nodes: the stamp of a virtual person stands back behind what the person says. */
export function spoken(text) {
  const stamp = STAMP.exec(text)?.[0];
  if (!stamp) return [text];
  return [el("span", { class: "stamp", title: stamp }, stamp), text.slice(stamp.length)];
}
