// Direct messages: what came, by its number in one's inbox, and what was sent from this tab.

import { PAGE, Talk } from "./room.js";

/** Messages that were sent from this tab and survive its being loaded anew: no server lists them. */
const SENT_MAX = 200;
const MISSED_MAX = 1_000;
/** People one writes with; beyond it the conversation that began first is put away. */
const TALKS_MAX = 500;

export class Inbox {
  /** Conversations by the other's name. */
  talks = new Map();
  /** The number of the latest message that came. */
  told = 0;
  sent = [];

  /** `calls`: me(), ask(what, body), open(): the conversation that is before one's eyes. */
  constructor(calls) {
    this.calls = calls;
  }

  forget() {
    this.talks.clear();
    this.told = 0;
    this.sent = [];
  }

  /** The conversation with somebody. */
  with(name) {
    if (!this.talks.has(name)) {
      const old = [...this.talks.values()].find((talk) => talk !== this.calls.open());
      if (this.talks.size >= TALKS_MAX) this.talks.delete(old.name);
      const talk = new Talk(name);
      this.talks.set(name, talk);
      for (const { to, ...message } of this.sent) {
        if (to === name) talk.add({ ...message, sender: this.calls.me() }, false);
      }
    }
    return this.talks.get(name);
  }

  hear({ sender, text = "", number = 0, atMs = 0 }, isFresh) {
    this.told = Math.max(this.told, number);
    this.with(sender).add({ sender, text, at: Number(atMs), id: number }, isFresh);
  }

  /** Fetches what came while one was away. */
  async catchUp(latest) {
    const before = this.told;
    // An inbox that became shorter is that of another life of the server.
    if (latest < before) this.forget();
    if (latest === 0) return;
    const missed = Math.max(PAGE, latest - before);
    const answer = await this.calls.ask("history", { room: "", limit: Math.min(MISSED_MAX, missed) });
    for (const message of answer.messages ?? []) this.hear(message, before > 0 && message.number > before);
    this.told = Math.max(this.told, latest);
  }

  /** Something has been sent. */
  keep(talk, said, at) {
    const message = { to: talk.name, text: said.text, at, id: said.key };
    this.sent = [...this.sent, message].slice(-SENT_MAX);
    talk.add({ ...message, sender: this.calls.me() }, false);
  }
}
