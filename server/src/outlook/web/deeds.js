// What can be done to messages, people and rooms besides talking: tools, menus and dialogs.

import { $, bytesOf, el, picture, setText } from "./dom.js";

const REACTIONS = ["👍", "❤️", "😂", "🎉", "😮", "👎"];
const ROLES = ["owner", "moderator", "member", "muted", "banned", "none"];

const isEqualOrAbove = (theirs, mine) => {
  const rank = { owner: 2, moderator: 1 };
  return (rank[theirs] ?? 0) >= (rank[mine] ?? 0);
};

export class Deeds {
  /** `calls`: me(), ask(what, body), can(what), reply(room, message), edit(room, message), tell(name),
   * created(name), failed(text). */
  constructor(calls) {
    this.calls = calls;
    for (const role of ROLES) {
      const words = role === "none" ? "no role" : role;
      $("grant-role").append(el("option", { value: role, selected: role === "member" }, words));
    }
    $("create-open").addEventListener("click", () => this.#openCreate());
    $("create").querySelector("form").addEventListener("submit", (event) => this.#create(event));
    $("settings").querySelector("form").addEventListener("submit", (event) => this.#configure(event));
    $("grant").addEventListener("click", () => this.#grantByForm());
  }

  /** Does it and tells what went wrong; whether it went well. */
  async #try(what, body, failed = this.calls.failed) {
    try {
      await this.calls.ask(what, body);
      return true;
    } catch (error) {
      failed(error.message);
      return false;
    }
  }

  /** The buttons beside a message. */
  tools(room, message) {
    if (room.isDirect || room.state !== "in") return [];
    const isOwn = message.sender === this.calls.me();
    const named = (words, label, deed) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: deed }, words);
    const tools = [];
    if (this.calls.can("react")) {
      tools.push(...REACTIONS.slice(0, 3).map((reaction) =>
        named(reaction, `React with ${reaction}`, () => this.react(room, message, reaction))));
      tools.push(named(picture("smile"), "More reactions", (event) => this.#chooseReaction(room, message, event.currentTarget)));
    }
    if (this.calls.can("reply")) tools.push(named(picture("reply"), "Reply", () => this.calls.reply(room, message)));
    if (isOwn && this.calls.can("edit")) tools.push(named(picture("edit"), "Edit", () => this.calls.edit(room, message)));
    if ((isOwn || room.isModerated) && this.calls.can("delete")) {
      tools.push(named(picture("remove"), "Delete", () => this.#delete(room, message)));
    }
    return tools;
  }

  /** Reacts, or takes the reaction back. */
  react(room, message, reaction) {
    const remove = message.reactions.get(reaction)?.has(this.calls.me()) ?? false;
    this.#try("react", { room: room.name, number: message.number, reaction, remove });
  }

  #chooseReaction(room, message, opener) {
    const items = REACTIONS.map((reaction) => [reaction, () => this.react(room, message, reaction)]);
    this.#menu("React", items, opener, "faces");
  }

  #delete(room, message) {
    const items = [["Delete the message for everybody", () => this.#try("delete", { room: room.name, number: message.number })]];
    this.#menu("Delete?", items, document.activeElement);
  }

  /** What can be done about a person. */
  person(room, name, opener) {
    const me = this.calls.me();
    const items = [];
    if (name !== me && this.calls.can("tell")) items.push(["Write a direct message", () => this.calls.tell(name)]);
    const theirs = room.rights.get(name) ?? "";
    const mayAct = room.isModerated && name !== me && (room.role === "owner" || !isEqualOrAbove(theirs, room.role));
    if (mayAct) {
      const grant = (role) => () => this.#try("grant", { room: room.name, name, role });
      if (theirs === "muted") items.push(["Let speak", grant("member")]);
      else items.push(["Mute", grant("muted")]);
      if (theirs !== "member" && theirs !== "muted") items.push(["Make a member", grant("member")]);
      if (room.role === "owner" && theirs !== "moderator") items.push(["Make a moderator", grant("moderator")]);
      if (room.role === "owner" && theirs !== "owner") items.push(["Make an owner", grant("owner")]);
      items.push(["Kick out", () => this.#try("kick", { room: room.name, name })]);
      items.push(["Ban", grant("banned")]);
    }
    this.#menu(name, items, opener);
  }

  #menu(title, items, opener, look = "") {
    const dialog = $("menu");
    setText($("menu-title"), title);
    const item = ([words, deed]) => el("button", { value: "yes", onclick: deed }, words);
    const none = el("p", { class: "soft small" }, "There is nothing to be done here.");
    $("menu-items").className = look;
    $("menu-items").replaceChildren(...(items.length ? items.map(item) : [none]));
    dialog.addEventListener("close", () => opener?.focus?.({ preventScroll: true }), { once: true });
    dialog.showModal();
  }

  #openCreate() {
    $("create-name").value = "";
    $("create-private").checked = false;
    setText($("create-error"), "");
    $("create").showModal();
  }

  async #create(event) {
    if (event.submitter?.value !== "yes") return;
    event.preventDefault();
    const room = $("create-name").value.trim();
    const failed = (text) => setText($("create-error"), text);
    if (!(await this.#try("create", { room, private: $("create-private").checked }, failed))) return;
    $("create").close();
    this.calls.created(room);
  }

  /** Who may what in a room. */
  async settings(room) {
    this.settingsRoom = room;
    setText($("settings-title"), room.name);
    setText($("settings-error"), "");
    await this.learnRights(room);
    this.#showRights();
    $("settings-private").checked = room.isPrivate;
    $("settings-private").disabled = room.role !== "owner";
    $("settings-slow").value = Math.round(room.slowMs / 1000);
    for (const input of [$("settings-slow"), $("settings-go"), $("grant"), $("grant-name"), $("grant-role")]) {
      input.disabled = !room.isModerated;
    }
    $("settings").showModal();
  }

  /** The roles as they are now. */
  async learnRights(room) {
    try {
      const rights = await this.calls.ask("rights", { room: room.name });
      room.rights = new Map((rights.rights ?? []).map((right) => [right.name, right.role]));
      room.isPrivate = rights.private ?? false;
      room.slowMs = rights.slowMs ?? 0;
      room.peopleVersion += 1;
    } catch {
      // An open room has none, and not everybody may see those of others.
    }
  }

  /** A notice has come: what is open shows it. */
  refreshRights(room) {
    if ($("settings").open && this.settingsRoom === room) this.#showRights();
  }

  #showRights() {
    const room = this.settingsRoom;
    const right = ([name, role]) => {
      const take = el("button", { type: "button", "aria-label": `Take the role of ${name} away` }, "×");
      take.addEventListener("click", () => this.#grant(room, name, "none"));
      const may = room.isModerated && name !== this.calls.me() &&
        (room.role === "owner" || !isEqualOrAbove(role, room.role));
      return el("li", { class: "row" }, el("b", { class: "grow" }, name), el("span", { class: `pill ${role}` }, role), may ? take : null);
    };
    $("rights").replaceChildren(...[...room.rights].map(right));
  }

  #grantByForm() {
    const name = $("grant-name").value;
    if (name) this.#grant(this.settingsRoom, name, $("grant-role").value);
    $("grant-name").value = "";
  }

  async #grant(room, name, role) {
    setText($("settings-error"), "");
    const failed = (text) => setText($("settings-error"), text);
    if (!(await this.#try("grant", { room: room.name, name, role }, failed))) return;
    await this.learnRights(room);
    this.#showRights();
  }

  async #configure(event) {
    if (event.submitter?.value !== "yes") return;
    event.preventDefault();
    const room = this.settingsRoom;
    const body = {
      room: room.name,
      private: $("settings-private").checked,
      slowMs: Math.max(0, Math.round(Number($("settings-slow").value) * 1000)) || 0,
    };
    const failed = (text) => setText($("settings-error"), text);
    if (await this.#try("configure", body, failed)) $("settings").close();
  }
}

/** Why a text cannot be sent; empty if it can. */
export function wrongWith(text, most) {
  const bytes = bytesOf(text);
  return bytes > most ? `A message has up to ${most} bytes; this one has ${bytes}.` : "";
}

/** A notice of the server in words. */
export function wordsOf(notice, me) {
  const { what, name = "", role = "", by = "", slowMs = 0 } = notice;
  const who = name === me ? "You" : name;
  const is = name === me ? "are" : "is";
  const article = { owner: "an ", moderator: "a ", member: "a " }[role] ?? "";
  const now = role && role !== "none" ? `${is} ${article}${role} now` : `${is} without a role now`;
  const by_ = by ? `, by ${by === me ? "you" : by}` : "";
  if (what === "kicked") return `${who} ${name === me ? "were" : "was"} removed${by_}`;
  if (what === "role") return `${who} ${now}${by_}`;
  if (what === "configured") {
    const slow = slowMs ? `${slowMs / 1000} s between two messages of a member` : "no slow mode";
    return `The room is ${notice.private ? "private" : "public"} now, ${slow}${by_}`;
  }
  return "";
}
