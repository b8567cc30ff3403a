// One conversation, a room or a person: a window onto its messages, who is there, what is unread.

import { randomKey } from "./dom.js";

/** Messages that are kept while new ones come in below, and most that are ever kept. */
export const KEEP = 300;
export const SHOWN_MAX = 600;
/** Messages that are asked for at once. */
export const PAGE = 100;
/** Texts that may wait for the server. */
export const OUTBOX_MAX = 50;
/** Direct messages of one person that would not be shown twice. */
const KNOWN_MAX = 10_000;
/** How long somebody types who does not say so again, in milliseconds. */
const TYPING_MS = 6_000;
const TYPING_MAX = 200;
const PEOPLE_MAX = 100_000;
/** The rate is taken over so many seconds. */
const RATE_SECONDS = 3;

/** A message as it came, in the form the page works with. */
function taken(message) {
  return {
    number: message.number ?? 0,
    sender: message.sender ?? "",
    text: message.text ?? "",
    at: Number(message.atMs ?? 0),
    replyTo: message.replyTo ?? 0,
    edited: Number(message.editedMs ?? 0),
    deleted: message.deleted ?? false,
    reactions: new Map((message.reactions ?? []).map((r) => [r.reaction, new Set(r.names ?? [])])),
    version: 0,
  };
}

export class Room {
  /** All that is shown, oldest first. Notes have no number. */
  messages = [];
  /** Numbers of the first and the last message in the window. */
  first = 0;
  last = 0;
  /** The number of the latest message there is. */
  number = 0;
  /** The latest message that was looked at here. */
  seen = 0;
  /** Told to the others. */
  readSent = 0;
  /** Whether the reader is at the end and wants to stay there. */
  following = true;
  /** Whether messages before the window may exist. */
  hasOlder = true;
  loading = false;
  /** out, in, or gone: not to be entered again by itself. */
  state = "out";
  why = "";
  people = new Map();
  reads = new Map();
  typing = new Map();
  role = "";
  rights = new Map();
  isPrivate = false;
  slowMs = 0;
  outbox = [];
  draft = "";
  readsVersion = 0;
  peopleVersion = 0;
  #said = [];

  constructor(name, isDirect = false) {
    this.name = name;
    this.isDirect = isDirect;
    this.state = isDirect ? "in" : "out";
  }

  /** Whether the window reaches to the latest message. */
  get isLive() {
    return this.last >= this.number;
  }

  get unread() {
    return Math.max(0, this.number - this.seen);
  }

  /** Everything there is was looked at. */
  look() {
    this.seen = this.number;
  }

  /** Whether the asker may moderate. */
  get isModerated() {
    return this.role === "owner" || this.role === "moderator";
  }

  /** A live message. */
  hear(live, now) {
    const message = taken(live);
    this.typing.delete(message.sender);
    if (message.number <= this.number) return this.#insert(message);
    const wasLive = this.isLive;
    this.number = message.number;
    this.#count(now);
    const hasPlace = this.following || this.messages.length < SHOWN_MAX;
    if (wasLive && hasPlace && message.number > this.last) {
      this.#push(message);
      this.#trimTop();
    }
  }

  /** Late or doubled: has its place in the window, unless it is there or out of sight. */
  #insert(message) {
    if (message.number <= this.first || message.number >= this.last) return;
    const at = this.messages.findIndex((other) => other.number >= message.number);
    if (at >= 0 && this.messages[at].number !== message.number) {
      this.messages.splice(at, 0, message);
    }
  }

  #push(message) {
    this.messages.push(message);
    this.last = message.number;
    if (!this.first) this.first = message.number;
  }

  /** A line of the page's own. */
  note(text, at) {
    if (!this.isLive || (!this.following && this.messages.length >= SHOWN_MAX)) return;
    this.messages.push({ note: text, at, version: 0 });
    this.#trimTop();
  }

  #trimTop() {
    if (!this.following || this.messages.length <= SHOWN_MAX) return;
    this.messages.splice(0, this.messages.length - KEEP);
    this.hasOlder = true;
    this.#bound();
  }

  #bound() {
    const numbered = this.messages.filter((message) => message.number);
    this.first = numbered[0]?.number ?? 0;
    this.last = numbered[numbered.length - 1]?.number ?? 0;
  }

  /** What was missed, or the latest: the answer to a join. */
  resume(joined, after) {
    const messages = (joined.messages ?? []).map(taken);
    const number = joined.number ?? 0;
    // A number that went back is another life of the room: nothing of the old one holds.
    if (number < this.number) this.forget();
    const fresh = messages.filter((message) => message.number > Math.max(after, this.last));
    const isWhole = after > 0 && this.last === after && (!fresh.length || fresh[0].number === after + 1);
    this.#count(performance.now(), Math.min(number - this.number, fresh.length));
    this.number = Math.max(this.number, number);
    const hasPlace = this.following || this.messages.length + fresh.length <= SHOWN_MAX;
    if (isWhole && hasPlace) {
      for (const message of fresh) this.#push(message);
      this.#trimTop();
    } else if (this.last < number || !this.messages.length) {
      if (this.following || !this.messages.length) this.replace(messages);
    }
  }

  forget() {
    this.messages = [];
    this.number = this.first = this.last = this.seen = this.readSent = 0;
    this.reads.clear();
    this.hasOlder = true;
  }

  /** Another window; the messages are as the server lists them or as the page has them. */
  replace(messages) {
    this.messages = messages.map((message) => (message.version === undefined ? taken(message) : message));
    this.#bound();
    this.number = Math.max(this.number, this.last);
    this.hasOlder = this.first > 1;
  }

  /** A page of the past goes on top. */
  prepend(page) {
    const older = page.map(taken).filter((message) => message.number < this.first || !this.first);
    this.hasOlder = older.length > 0 && older[0].number > 1;
    this.messages.unshift(...older);
    if (this.messages.length > SHOWN_MAX) this.messages.splice(SHOWN_MAX);
    this.#bound();
  }

  /** A page of what comes after the window goes below. */
  append(page) {
    const newer = page.map(taken).filter((message) => message.number > this.last);
    for (const message of newer) this.#push(message);
    const beyond = this.messages.length - SHOWN_MAX;
    if (beyond > 0) this.messages.splice(0, beyond);
    if (beyond > 0) this.hasOlder = true;
    this.#bound();
    this.number = Math.max(this.number, this.last);
  }

  find(number) {
    return this.messages.find((message) => message.number === number);
  }

  change(change) {
    this.typing.delete(change.name);
    const message = this.find(change.number ?? 0);
    if (!message) return;
    message.version += 1;
    // Who quotes it shows it as it is now.
    if (!change.reaction) {
      for (const other of this.messages) if (other.replyTo === message.number) other.version += 1;
    }
    if (change.reaction) {
      const names = message.reactions.get(change.reaction) ?? new Set();
      if (change.removed) names.delete(change.name);
      else names.add(change.name);
      if (names.size) message.reactions.set(change.reaction, names);
      else message.reactions.delete(change.reaction);
    } else if (change.deleted) {
      Object.assign(message, { deleted: true, text: "" });
      message.reactions.clear();
    } else {
      Object.assign(message, { text: change.text ?? "", edited: Number(change.atMs ?? 1) });
    }
  }

  /** A person may be here by several connections. */
  arrive(person) {
    const known = this.people.get(person.name);
    if (!known && this.people.size >= PEOPLE_MAX) return;
    this.people.set(person.name, { status: person.status ?? "", times: (known?.times ?? 0) + 1 });
    this.peopleVersion += 1;
  }

  depart(name) {
    const known = this.people.get(name);
    if (!known) return;
    known.times -= 1;
    if (known.times <= 0) {
      this.people.delete(name);
      this.typing.delete(name);
      this.reads.delete(name);
      this.readsVersion += 1;
    }
    this.peopleVersion += 1;
  }

  read(name, number) {
    if (!name || (this.reads.get(name) ?? 0) >= number) return;
    if (!this.reads.has(name) && this.reads.size >= PEOPLE_MAX) return;
    this.reads.set(name, number);
    this.readsVersion += 1;
  }

  /** Who has read up to which message of the window: names by the message's number. */
  readers(me) {
    const numbers = new Map();
    const numbered = this.messages.filter((message) => message.number);
    for (const [name, read] of this.reads) {
      if (name === me || read < this.first) continue;
      const at = Math.min(read, this.last);
      // What somebody said themselves they have read anyway.
      const found = numbered[at - this.last + numbered.length - 1];
      const number = found?.number === at ? at : numbered.findLast((m) => m.number <= at)?.number;
      if (!number) continue;
      if (!numbers.has(number)) numbers.set(number, []);
      numbers.get(number).push(name);
    }
    return numbers;
  }

  types(name, now) {
    if (this.typing.size < TYPING_MAX) this.typing.set(name, now + TYPING_MS);
  }

  typists(me, now) {
    for (const [name, until] of this.typing) {
      if (until < now) this.typing.delete(name);
    }
    return [...this.typing.keys()].filter((name) => name !== me);
  }

  /** A text of one's own that the server is to take; under its key it is said once. */
  entrust(text, replyTo) {
    const said = { key: randomKey(), text, replyTo, error: "" };
    this.outbox.push(said);
    return said;
  }

  settle(said) {
    this.outbox = this.outbox.filter((other) => other !== said);
  }

  #count(now, messages = 1) {
    const second = Math.floor(now / 1000);
    const latest = this.#said[this.#said.length - 1];
    if (latest?.second === second) latest.messages += messages;
    else this.#said.push({ second, messages });
    if (this.#said.length > RATE_SECONDS + 1) this.#said.shift();
  }

  /** Messages in a second, over the last few whole seconds. */
  rate(now) {
    const second = Math.floor(now / 1000);
    const recent = this.#said.filter((s) => s.second < second && s.second >= second - RATE_SECONDS);
    return recent.reduce((sum, s) => sum + s.messages, 0) / RATE_SECONDS;
  }
}

/** What two people tell each other. Their messages have no numbers of the conversation. */
export class Talk extends Room {
  fresh = 0;
  #known = new Set();

  constructor(name) {
    super(name, true);
    this.hasOlder = false;
  }

  get unread() {
    return this.fresh;
  }

  look() {
    this.fresh = 0;
  }

  /** One that came, by its number in the inbox, or that was sent from here, by its key. */
  add({ sender, text, at, id }, isFresh) {
    if (this.#known.has(id)) return;
    this.#known.add(id);
    if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.values().next().value);
    const message = { ...taken({ sender, text }), at };
    const later = this.messages.findIndex((other) => other.at > at);
    if (later < 0) this.messages.push(message);
    else this.messages.splice(later, 0, message);
    if (this.messages.length > SHOWN_MAX) this.messages.shift();
    if (isFresh) this.fresh += 1;
  }
}
