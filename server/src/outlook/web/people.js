// Who is in the room: a list that can be filtered, bounded however large the crowd is.

import { $, countOf, el, isStamp, setText, spoken } from "./dom.js";
import { face } from "./faces.js";

const LISTED_MAX = 200;
/** A crowd is sorted less often: so large, and so many milliseconds apart. */
const CROWD = 2_000;
const CROWD_EVERY = 3_000;

const { compare } = new Intl.Collator(undefined, { numeric: true });

export class People {
  #room = null;
  #version = "";
  #drawnAt = 0;

  /** `calls`: me(), menu(room, name, button). */
  constructor(calls) {
    this.calls = calls;
    $("people-filter").addEventListener("input", () => this.refresh(true));
  }

  show(room) {
    this.#room = room;
    $("people-filter").value = "";
    this.refresh(true);
  }

  /** Draws the list where something has changed. */
  refresh(anyhow = false) {
    const room = this.#room;
    if (!room || room.isDirect) return;
    const version = `${room.name} ${room.peopleVersion} ${room.role} ${room.state}`;
    const now = performance.now();
    const isEarly = room.people.size > CROWD && now - this.#drawnAt < CROWD_EVERY;
    if (!anyhow && (isEarly || version === this.#version)) return;
    this.#version = version;
    this.#drawnAt = now;
    const me = this.calls.me();
    const names = [...room.people.keys()];
    const isHere = room.state === "in";
    const total = room.people.size + (isHere && !room.people.has(me) ? 1 : 0);
    if (isHere && !room.people.has(me)) names.push(me);
    setText($("people-count"), countOf(total));
    setText($("people-number"), countOf(total));
    $("people-open").setAttribute("aria-label", `People: ${countOf(total)}`);
    const wanted = $("people-filter").value.trim().toLowerCase();
    const found = wanted ? names.filter((name) => name.toLowerCase().includes(wanted)) : names;
    const rank = (name) => (name === me ? 0 : room.rights.has(name) ? 1 : 2);
    found.sort((a, b) => rank(a) - rank(b) || compare(a, b));
    this.#draw(room, found.slice(0, LISTED_MAX), me);
    const more = found.length - LISTED_MAX;
    setText($("people-more"), more > 0 ? `and ${countOf(more)} more` : found.length ? "" : "nobody");
  }

  #draw(room, names, me) {
    const list = $("people-list");
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
    list.replaceChildren(...names.map((name) => el("li", {}, this.#person(room, name, me))));
    if (focused !== undefined) {
      list.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
  }

  #person(room, name, me) {
    const { status = "" } = room.people.get(name) ?? {};
    const role = name === me ? room.role : room.rights.get(name);
    const words = el("span", { class: "grow" }, el("b", {}, name),
      name === me ? el("small", {}, " (you)") : null,
      status && !isStamp(status) ? el("small", { class: "status" }, ...spoken(status)) : null);
    const badge = role && role !== "member" ? el("span", { class: `pill ${role}` }, role) : null;
    return el("button", {
      type: "button", "data-name": name, "aria-haspopup": "dialog",
      onclick: (event) => this.calls.menu(room, name, event.currentTarget),
    }, face(name), words, badge);
  }
}
