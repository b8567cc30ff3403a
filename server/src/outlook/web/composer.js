// Where one writes: the text, what it replies to or replaces, and what waits for the server.

import { $, el, setText } from "./dom.js";
import { wrongWith } from "./deeds.js";
import { OUTBOX_MAX } from "./room.js";

/** The server's limit for a text, in bytes. */
const TEXT_BYTES_MAX = 16 * 1024;
/** How often the others are told that one types, in milliseconds. */
const TYPING_EVERY = 3_000;
const EXCERPT_LETTERS = 100;

export class Composer {
  #room = null;
  #typedAt = -TYPING_EVERY;

  /** `calls`: send(room, text, replyTo), edit(room, message, text), typing(room), retry(room, said), last(room). */
  constructor(calls) {
    this.calls = calls;
    const text = $("text");
    text.addEventListener("input", () => this.#typed());
    text.addEventListener("keydown", (event) => this.#key(event));
    $("say").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    $("about-close").addEventListener("click", () => this.about(null));
  }

  /** Another conversation: each has a draft of its own. */
  show(room) {
    if (this.#room) this.#room.draft = $("text").value;
    this.#room = room;
    $("text").value = room?.draft ?? "";
    setText($("say-error"), "");
    this.#grow();
    this.refresh();
  }

  /** Whether one may write here now, and what waits. */
  refresh() {
    const room = this.#room;
    if (!room) return;
    const isGone = room.state === "gone";
    $("text").disabled = isGone;
    $("say").querySelector("button[type=submit]").disabled = isGone;
    $("text").placeholder = isGone ? room.why : room.role === "muted" ? "You are muted here" : `Message ${room.isDirect ? "" : "#"}${room.name}`;
    this.#showAbout();
    this.#showOutbox();
  }

  /** What is being written is a reply or an edit; `null`: neither. */
  about(about) {
    const room = this.#room;
    if (!room) return;
    const wasEdit = room.about?.kind === "edit";
    room.about = about;
    if (about?.kind === "edit") $("text").value = about.message.text;
    else if (wasEdit) $("text").value = "";
    this.#grow();
    this.#showAbout();
    $("text").focus();
  }

  fail(text) {
    setText($("say-error"), text);
  }

  #showAbout() {
    const about = this.#room?.about;
    $("about").hidden = !about;
    if (!about) return;
    const { sender, text } = about.message;
    const words = about.kind === "edit" ? "Editing" : `Replying to ${sender}`;
    setText($("about-text"), `${words}: ${text.slice(0, EXCERPT_LETTERS)}`);
  }

  #showOutbox() {
    const room = this.#room;
    const version = room.outbox.map((said) => said.key + said.error).join(" ") + room.name;
    if (version === this.version) return;
    this.version = version;
    $("outbox").replaceChildren(...room.outbox.map((said) => this.#waiting(room, said)));
  }

  #waiting(room, said) {
    if (!said.error) return el("p", { class: "waiting" }, el("span", { class: "grow" }, said.text), el("small", {}, "sending…"));
    const again = el("button", { type: "button", onclick: () => this.calls.retry(room, said) }, "Again");
    const drop = el("button", { type: "button", onclick: () => { room.settle(said); this.refresh(); } }, "Discard");
    return el("p", { class: "waiting failed", role: "alert" }, el("span", { class: "grow" }, said.text), el("small", { class: "error" }, said.error), again, drop);
  }

  #typed() {
    this.#grow();
    setText($("say-error"), "");
    const now = performance.now();
    if (!this.#room || !$("text").value || now - this.#typedAt < TYPING_EVERY) return;
    this.#typedAt = now;
    this.calls.typing(this.#room);
  }

  #grow() {
    const text = $("text");
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight + 2}px`;
  }

  #key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.#send();
    } else if (event.key === "Escape" && this.#room?.about) {
      event.stopPropagation();
      this.about(null);
    } else if (event.key === "ArrowUp" && !$("text").value && this.#room) {
      const message = this.calls.last(this.#room);
      if (message) this.about({ kind: "edit", message });
      if (message) event.preventDefault();
    }
  }

  #send() {
    const room = this.#room;
    const text = $("text").value;
    if (!room || !text.trim()) return;
    const wrong = wrongWith(text, TEXT_BYTES_MAX) ||
      (room.outbox.length >= OUTBOX_MAX ? "Too much waits to be sent already." : "");
    if (wrong) return this.fail(wrong);
    const about = room.about;
    room.about = null;
    $("text").value = "";
    this.#typedAt = -TYPING_EVERY;
    if (about?.kind === "edit") this.calls.edit(room, about.message, text);
    else this.calls.send(room, text, about?.message.number ?? 0);
    this.#grow();
    this.refresh();
  }
}
