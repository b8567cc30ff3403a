// The list of conversations at the side: rooms, people one writes with, rooms one could join.

import { $, countOf, el, picture, setText } from "./dom.js";
import { face } from "./faces.js";

const OTHERS_MAX = 50;

export class Places {
  #buttons = new Map();
  #others = "";
  #listed = [];

  /** `calls`: open(place), join(name). */
  constructor(calls) {
    this.calls = calls;
  }

  /** Draws what has changed; `rooms` and `talks` by name, `current` is open. */
  refresh(rooms, talks, current) {
    this.#list($("rooms"), rooms, current);
    this.#list($("tells"), talks, current);
    $("tells-title").hidden = talks.size === 0;
    const elsewhere = [...rooms.values(), ...talks.values()].filter((place) => place !== current);
    const unread = elsewhere.reduce((sum, place) => sum + place.unread, 0);
    $("elsewhere").hidden = unread === 0;
    setText($("elsewhere"), unread ? short(unread) : "");
    return unread;
  }

  #list(list, places, current) {
    for (const place of places.values()) {
      if (!this.#buttons.has(place)) this.#buttons.set(place, this.#button(place));
      const { item, button, badge } = this.#buttons.get(place);
      if (item.parentNode !== list) list.append(item);
      const unread = place === current ? 0 : place.unread;
      badge.hidden = unread === 0;
      setText(badge, unread ? short(unread) : "");
      const label = unread ? `${place.name}, ${countOf(unread)} unread` : place.name;
      if (button.getAttribute("aria-label") !== label) button.setAttribute("aria-label", label);
      button.classList.toggle("gone", place.state === "gone");
      if (place === current) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    for (const [place, { item }] of this.#buttons) {
      if (item.parentNode !== list || places.get(place.name) === place) continue;
      item.remove();
      this.#buttons.delete(place);
    }
  }

  #button(place) {
    const badge = el("span", { class: "badge", "aria-hidden": "true", hidden: true });
    const sign = place.isDirect ? face(place.name) : el("span", { class: "sign", "aria-hidden": "true" }, "#");
    const button = el("button", { type: "button", "data-place": place.name, onclick: () => this.calls.open(place) },
      sign, el("span", { class: "grow" }, place.name), badge);
    return { item: el("li", {}, button), button, badge };
  }

  /** Rooms of the server in which one is not; without a list, of those known. */
  offer(joined, listed = this.#listed) {
    this.#listed = listed;
    const others = listed.filter((room) => !joined.has(room.name));
    others.sort((a, b) => (b.people ?? 0) - (a.people ?? 0) || a.name.localeCompare(b.name));
    const shown = others.slice(0, OTHERS_MAX);
    const version = JSON.stringify(shown.map((room) => [room.name, room.people, room.private]));
    if (version === this.#others) return;
    this.#others = version;
    $("others-title").hidden = shown.length === 0;
    const list = $("others");
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.other : undefined;
    list.replaceChildren(...shown.map((room) => el("li", {}, this.#other(room))));
    if (focused !== undefined) list.querySelector(`[data-other="${CSS.escape(focused)}"]`)?.focus();
  }

  #other(room) {
    const people = room.people ?? 0;
    const label = `Join ${room.name}, ${countOf(people)} people${room.private ? ", private" : ""}`;
    return el("button", { type: "button", class: "other", "data-other": room.name, "aria-label": label, onclick: () => this.calls.join(room.name) },
      el("span", { class: "sign", "aria-hidden": "true" }, room.private ? picture("lock") : "#"),
      el("span", { class: "grow" }, room.name), el("small", {}, people ? countOf(people) : ""));
  }
}

function short(number) {
  return number > 999 ? "999+" : String(number);
}
