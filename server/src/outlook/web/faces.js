// Faces of people: pictures by their hash, each asked for once; letters on a color until one is there.

import { el } from "./dom.js";

/** Pictures and people that are remembered, and requests at a time. */
const LOOKS_MAX = 2_000;
const PEOPLE_MAX = 20_000;
const ASKED_AT_ONCE = 8;
const WAITING_MAX = 400;

const looks = new Map();
const hashes = new Map();
const waiting = [];
let asked = 0;
let ask = async () => {
  throw new Error("nobody to ask");
};

/** Pictures are asked for by this. */
export function askBy(function_) {
  ask = function_;
}

/** After a new connection what was not answered may be asked again. */
export function retryFaces() {
  asked = 0;
  waiting.length = 0;
  for (const [hash, look] of looks) if (look === null) looks.delete(hash);
}

/** Somebody was listed or announced, maybe with a picture or its hash. */
export function meet(person) {
  let hash = person.avatarHash ?? "";
  if (person.avatar) {
    hash = `pushed ${person.name}`;
    if (!looks.has(hash)) remember(hash, lookOf(bytesOf(person.avatar)));
  }
  if (!hash || hashes.get(person.name) === hash) return;
  if (hashes.size >= PEOPLE_MAX) hashes.delete(hashes.keys().next().value);
  hashes.set(person.name, hash);
}

/** A small round picture of somebody; it says nothing that the name beside it does not. */
export function face(name) {
  const made = el("span", { class: "face", "aria-hidden": "true" }, initials(name));
  const hue = hueOf(name);
  paint(made, { hues: [hue, (hue + 40) % 360] });
  const hash = hashes.get(name);
  if (!hash) return made;
  const look = looks.get(hash);
  if (look) paint(made, look);
  else want(hash, made);
  return made;
}

function want(hash, element) {
  element.dataset.hash = hash;
  if (looks.has(hash) || waiting.length >= WAITING_MAX) return;
  remember(hash, null);
  waiting.push(hash);
  next();
}

function next() {
  while (asked < ASKED_AT_ONCE && waiting.length) {
    const hash = waiting.shift();
    asked += 1;
    ask(hash)
      .then((answer) => show(hash, lookOf(bytesOf(answer.picture ?? ""))))
      .catch(() => {})
      .finally(() => {
        asked = Math.max(0, asked - 1);
        next();
      });
  }
}

function show(hash, look) {
  remember(hash, look);
  for (const element of document.querySelectorAll(`[data-hash="${CSS.escape(hash)}"]`)) {
    paint(element, look);
  }
}

function remember(hash, look) {
  if (looks.size >= LOOKS_MAX && !looks.has(hash)) {
    const [oldest, gone] = looks.entries().next().value;
    if (gone?.url) URL.revokeObjectURL(gone.url);
    looks.delete(oldest);
  }
  looks.set(hash, look);
}

function paint(element, look) {
  delete element.dataset.hash;
  if (look.url) return element.replaceChildren(el("img", { src: look.url, alt: "" }));
  element.style.setProperty("--one", look.hues[0]);
  element.style.setProperty("--two", look.hues[1]);
}

/** How bytes look: those of an image as that image, others (the yardstick's are noise) as colors. */
function lookOf(bytes) {
  const type = typeOf(bytes);
  if (type) return { url: URL.createObjectURL(new Blob([bytes], { type })) };
  const [one = 0, two = 0, three = 0, four = 0] = bytes;
  return { hues: [(one * 256 + two) % 360, (three * 256 + four) % 360] };
}

function typeOf(bytes) {
  const starts = (...head) => head.every((byte, at) => bytes[at] === byte);
  if (starts(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a)) return "image/png";
  if (starts(0xff, 0xd8, 0xff)) return "image/jpeg";
  if (starts(0x47, 0x49, 0x46, 0x38)) return "image/gif";
  if (starts(0x52, 0x49, 0x46, 0x46) && bytes[8] === 0x57 && bytes[9] === 0x45) return "image/webp";
  return "";
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** Two letters; of those who are numbered, the number's end, which tells them apart. */
function initials(name) {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const last = words[words.length - 1] ?? name;
  if (words.length > 1 && /^\d+$/.test(last)) return last.slice(-3);
  const letters = words.length > 1 ? [words[0], last].map((word) => [...word][0]) : [...name].slice(0, 2);
  return letters.join("").toUpperCase();
}

function hueOf(name) {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return hash % 360;
}
