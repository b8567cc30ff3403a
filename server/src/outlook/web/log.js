// The messages of a conversation on the screen: as many rows as the window has, drawn once a frame.

import { countOf, dayOf, el, listOf, momentOf, spoken, timeOf } from "./dom.js";
import { face } from "./faces.js";

/** Pixels from an end at which the reader is taken to be there. */
const NEAR = 48;
/** Pixels from the top at which the past is asked for. */
const EARLY = 300;
/** Messages of one person within this time stand together. */
const TOGETHER_MS = 5 * 60_000;
/** From so many messages a second on they are not read aloud one by one. */
const ALOUD_MAX = 3;
const QUOTE_LETTERS = 120;

export class Log {
  #rows = new Map();
  #shown = [];
  #room = null;
  #held = false;
  #top = 0;
  #readsVersion = -1;
  #readsShown = [];

  /** `calls`: me(), older(room), newer(room), moved(room), tools(room, message), quote(room, number), react(…). */
  constructor(box, calls) {
    this.box = box;
    this.calls = calls;
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    box.addEventListener("wheel", (event) => event.deltaY < 0 && this.#pause(), { passive: true });
    for (const start of ["mousedown", "touchstart"]) {
      box.addEventListener(start, () => this.#hold(true), { passive: true });
    }
    for (const end of ["mouseup", "touchend", "touchcancel"]) addEventListener(end, () => this.#hold(false));
    // The end of a drag of the scroll bar is not always told.
    addEventListener("mousemove", (event) => !event.buttons && this.#hold(false), { passive: true });
    new ResizeObserver(() => this.render()).observe(box);
    box.addEventListener("focusin", (event) => this.#equip(event.target.closest(".message")));
    box.addEventListener("mouseover", (event) => this.#equip(event.target.closest(".message")));
    box.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Another conversation. */
  show(room) {
    this.#room = room;
    this.#clear();
    this.render();
  }

  #clear() {
    this.box.replaceChildren();
    this.#rows.clear();
    this.#shown = [];
    this.#readsVersion = -1;
    this.#readsShown = [];
  }

  /** Whether nothing may move under the reader's hand. */
  get #isHeld() {
    const selection = getSelection();
    const selects = selection && !selection.isCollapsed && this.box.contains(selection.anchorNode);
    return this.#held || selects;
  }

  /** Brings the screen to what the room is now. */
  render() {
    const room = this.#room;
    if (!room) return;
    const messages = room.messages;
    const sticks = room.following && !this.#isHeld;
    const anchor = sticks ? null : this.#anchor(new Set(messages));
    if (!this.#patch(messages)) {
      this.#clear();
      this.#patch(messages);
    }
    this.#redraw();
    this.#showReaders();
    if (sticks) this.box.scrollTop = this.box.scrollHeight;
    else if (anchor) this.box.scrollTop += anchor.row.getBoundingClientRect().top - anchor.top;
    this.#top = this.box.scrollTop;
    if (!this.box.firstChild) this.box.append(el("p", { class: "alone soft" }, "Nothing was said here yet."));
    if (room.hasOlder && this.box.scrollTop < EARLY) this.calls.older(room);
  }

  /** A row that stays and that the reader sees. */
  #anchor(staying) {
    const top = this.box.getBoundingClientRect().top;
    for (const message of this.#shown) {
      if (!staying.has(message)) continue;
      const row = this.#rows.get(message).row;
      const rect = row.getBoundingClientRect();
      if (rect.bottom > top) return { row, top: rect.top };
    }
    return null;
  }

  /** Takes rows away at both ends and adds at both; `false` if that does not lead there. */
  #patch(messages) {
    const shown = this.#shown;
    if (!shown.length) this.box.replaceChildren();
    const staying = new Set(messages);
    let start = 0;
    while (start < shown.length && !staying.has(shown[start])) start += 1;
    let end = shown.length;
    while (end > start && !staying.has(shown[end - 1])) end -= 1;
    for (const message of [...shown.slice(0, start), ...shown.slice(end)]) this.#remove(message);
    const kept = shown.slice(start, end);
    const at = kept.length ? messages.indexOf(kept[0]) : 0;
    if (kept.some((message, index) => messages[at + index] !== message)) return false;
    const above = document.createDocumentFragment();
    for (let i = 0; i < at; i += 1) above.append(this.#row(messages, i));
    this.box.prepend(above);
    const below = document.createDocumentFragment();
    for (let i = at + kept.length; i < messages.length; i += 1) below.append(this.#row(messages, i));
    this.box.append(below);
    this.#shown = messages.slice();
    // Who stands first now, or no longer, begins anew or goes on.
    for (const index of [0, at]) if (messages[index]) this.#group(messages, index);
    return true;
  }

  #remove(message) {
    this.#rows.get(message)?.row.remove();
    this.#rows.delete(message);
  }

  #row(messages, index) {
    const message = messages[index];
    const row = message.note
      ? el("div", { class: "note" }, message.note)
      : el("article", { class: "message", tabindex: "-1", "data-number": message.number });
    this.#rows.set(message, { row, version: message.version });
    if (!message.note) this.#fill(row, message);
    this.#group(messages, index);
    return row;
  }

  #group(messages, index) {
    const message = messages[index];
    const row = this.#rows.get(message)?.row;
    if (!row || message.note) return;
    const before = messages[index - 1];
    const isNewDay = !before || new Date(before.at).toDateString() !== new Date(message.at).toDateString();
    const goesOn = before && !before.note && !isNewDay && before.sender === message.sender &&
      message.at - before.at < TOGETHER_MS && !message.replyTo;
    row.classList.toggle("goes-on", Boolean(goesOn));
    if (isNewDay) row.dataset.day = dayOf(message.at);
    else delete row.dataset.day;
  }

  #fill(row, message) {
    const me = this.calls.me();
    row.classList.toggle("own", message.sender === me);
    row.classList.toggle("deleted", message.deleted);
    const edited = message.edited ? el("small", { class: "soft", title: momentOf(message.edited) }, " (edited)") : null;
    const time = el("time", { datetime: new Date(message.at).toISOString(), title: momentOf(message.at) }, timeOf(message.at));
    const words = message.deleted ? ["This message was deleted."] : spoken(message.text);
    const text = el("p", { class: "text", dir: "auto" }, ...words, edited);
    row.replaceChildren(
      face(message.sender),
      el("header", {}, el("b", { class: "sender" }, message.sender), " ", time),
      ...(message.replyTo ? [this.#quote(message.replyTo)] : []),
      text,
      ...(message.reactions.size ? [this.#reactions(message, me)] : []),
    );
  }

  #quote(number) {
    const quoted = this.#room.find(number);
    const words = quoted
      ? `${quoted.sender}: ${quoted.deleted ? "deleted" : quoted.text.slice(0, QUOTE_LETTERS)}`
      : `message ${countOf(number)}`;
    const room = this.#room;
    return el("button", { type: "button", class: "quote", onclick: () => this.calls.quote(room, number) }, words);
  }

  #reactions(message, me) {
    const room = this.#room;
    const chip = ([reaction, names]) => el("button", {
      type: "button", class: "chip", "aria-pressed": String(names.has(me)), title: listOf([...names], 12),
      "aria-label": `${reaction}, ${listOf([...names], 6)}`,
      onclick: () => this.calls.react(room, message, reaction),
    }, `${reaction} ${countOf(names.size)}`);
    return el("div", { class: "reactions" }, ...[...message.reactions].map(chip));
  }

  /** Rows whose message was changed. */
  #redraw() {
    for (const message of this.#shown) {
      const known = this.#rows.get(message);
      if (known.version === message.version) continue;
      known.version = message.version;
      const hadFocus = known.row.contains(document.activeElement);
      this.#fill(known.row, message);
      if (hadFocus) known.row.focus({ preventScroll: true });
      this.#readsVersion = -1;
    }
  }

  #showReaders() {
    const room = this.#room;
    const version = `${room.readsVersion} ${room.first} ${room.last}`;
    if (this.#readsVersion === version) return;
    this.#readsVersion = version;
    for (const line of this.#readsShown) line.remove();
    this.#readsShown = [];
    for (const [number, names] of room.readers(this.calls.me())) {
      const row = this.#rows.get(room.find(number))?.row;
      if (!row) continue;
      const line = el("small", { class: "readers", title: listOf(names.toSorted(), 40) }, `read by ${listOf(names.toSorted(), 4)}`);
      row.append(line);
      this.#readsShown.push(line);
    }
  }

  /** The tools stand in one row only: in the one under the pointer or the focus. */
  #equip(row) {
    if (!row || row.querySelector(".tools")) return;
    const message = this.#shown.find((shown) => this.#rows.get(shown)?.row === row);
    if (!message || message.deleted) return;
    for (const tools of this.box.querySelectorAll(".tools")) {
      if (!tools.contains(document.activeElement)) tools.remove();
    }
    const tools = this.calls.tools(this.#room, message);
    if (tools.length) row.append(el("div", { class: "tools" }, ...tools));
  }

  #key(event) {
    const rows = [...this.box.querySelectorAll(".message")];
    const at = rows.indexOf(document.activeElement?.closest?.(".message"));
    const move = { ArrowUp: at < 0 ? rows.length - 1 : at - 1, ArrowDown: at + 1 }[event.key];
    if (event.key === "PageUp" || event.key === "Home") this.#pause();
    if (event.key === "End") this.follow();
    if (move === undefined || event.target.closest("input, textarea")) return;
    event.preventDefault();
    if (event.key === "ArrowUp") this.#pause();
    rows[move]?.focus({ preventScroll: true });
    rows[move]?.scrollIntoView({ block: "nearest" });
  }

  #hold(is) {
    if (this.#held === is) return;
    this.#held = is;
    if (!is) this.#scrolled();
  }

  #pause() {
    if (!this.#room || this.box.scrollHeight <= this.box.clientHeight) return;
    this.#room.following = false;
    this.calls.moved(this.#room);
  }

  /** To the end, and on with it. */
  follow() {
    if (!this.#room) return;
    this.#room.following = true;
    this.box.scrollTop = this.box.scrollHeight;
    this.calls.moved(this.#room);
  }

  #scrolled() {
    const room = this.#room;
    if (!room) return;
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    const below = scrollHeight - scrollTop - clientHeight;
    const [wentUp, wentDown] = [scrollTop < this.#top - 1, scrollTop > this.#top];
    this.#top = scrollTop;
    if (below < NEAR && !room.isLive) this.calls.newer(room);
    // Rows that come in below are no reason to stop following, the first pixel upward is; and only
    // who comes down to the end follows again.
    const wasFollowing = room.following;
    if (wentUp && below > 1) room.following = false;
    else if (wentDown && below < NEAR && room.isLive) room.following = true;
    if (room.following !== wasFollowing) this.calls.moved(room);
    if (scrollTop < EARLY && room.hasOlder) this.calls.older(room);
  }

  /** A message into view, marked for a moment. */
  reveal(number) {
    const row = this.#rows.get(this.#room?.find(number))?.row;
    if (!row) return false;
    this.#pause();
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
    return true;
  }

  /** How fast it goes decides how it is read aloud. */
  aloud(rate) {
    const live = rate > ALOUD_MAX ? "off" : "polite";
    if (this.box.getAttribute("aria-live") !== live) this.box.setAttribute("aria-live", live);
  }
}

/** The words of the button that leads to the end. */
export function jumpWords(room) {
  if (room.following && room.isLive) return "";
  return room.unread ? `↓ ${countOf(room.unread)} new` : "↓ Latest";
}
