// The conversation with the server: requests and their answers, frames, and coming back after a loss.

const SUBPROTOCOL = "yardstick.v1.json";
/** Waits between two attempts, in milliseconds; a part of each is left to chance. */
const WAIT_MIN = 250;
const WAIT_MAX = 15_000;
/** Silence after which the server is asked whether it is there, and how long it may take. */
const SILENCE_MAX = 20_000;
const PONG_MAX = 10_000;
/** Requests without an answer. */
const OPEN_MAX = 4_096;

/** The server has said no. */
export class Refused extends Error {
  constructor({ code = "unknown", text = "" }) {
    super(text || code);
    this.code = code;
  }
}

/** There is no connection, or it was lost before the answer came. */
export class Lost extends Error {}

export class Link {
  #socket = null;
  #open = new Map();
  #id = 0;
  #wait = WAIT_MIN;
  #timer = 0;
  #pulse = 0;
  #heardAt = 0;
  #wanted = false;

  /** `opened`, `lost(milliseconds until the next attempt)` and `frame(what, value)` are called. */
  constructor(calls) {
    this.calls = calls;
    addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.now();
    });
  }

  /** Connects, and again whenever the connection is lost. */
  start() {
    this.#wanted = true;
    if (!this.#socket) this.#connect();
  }

  stop() {
    this.#wanted = false;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#drop();
    socket?.close(1000);
  }

  /** Does not wait any longer for the next attempt. */
  now() {
    if (this.#wanted && !this.#socket) this.#connect();
  }

  /** The server has let us in: the next loss is not the last one's heir. */
  settle() {
    this.#wait = WAIT_MIN;
  }

  /** Asks, and gives what stands in the answer. */
  ask(what, body) {
    return new Promise((resolve, reject) => {
      if (this.#socket?.readyState !== WebSocket.OPEN) return reject(new Lost("not connected"));
      if (this.#open.size >= OPEN_MAX) return reject(new Lost("too many requests are open"));
      this.#id = (this.#id % 0xffff_fffe) + 1;
      this.#open.set(this.#id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id: this.#id, [what]: body }));
    });
  }

  #connect() {
    clearTimeout(this.#timer);
    const url = new URL("ws", document.baseURI);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.hash = "";
    const socket = new WebSocket(url, SUBPROTOCOL);
    this.#socket = socket;
    const isOurs = () => this.#socket === socket;
    socket.onopen = () => {
      if (!isOurs()) return;
      this.#heardAt = Date.now();
      this.#pulse = setInterval(() => this.#feel(socket), SILENCE_MAX / 2);
      this.calls.opened();
    };
    socket.onmessage = (event) => {
      if (isOurs()) this.#hear(event.data);
    };
    socket.onclose = () => {
      if (isOurs()) this.#lose();
    };
  }

  #hear(text) {
    this.#heardAt = Date.now();
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return this.#socket.close(4002, "no JSON");
    }
    const what = Object.keys(frame)[0];
    if (what !== "answer") return this.calls.frame(what, frame[what]);
    const { id = 0, ...rest } = frame.answer;
    const asked = this.#open.get(id);
    this.#open.delete(id);
    if (!asked) return;
    if (rest.error) asked.reject(new Refused(rest.error));
    else asked.resolve(Object.values(rest)[0] ?? {});
  }

  /** A connection can be dead without anybody having said so. */
  #feel(socket) {
    const silence = Date.now() - this.#heardAt;
    if (silence > SILENCE_MAX + PONG_MAX) {
      socket.close(4000, "silence");
      this.#lose();
    } else if (silence > SILENCE_MAX) {
      this.ask("ping", {}).catch(() => {});
    }
  }

  #drop() {
    clearInterval(this.#pulse);
    this.#socket = null;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reject } of open) reject(new Lost("the connection was lost"));
  }

  #lose() {
    this.#drop();
    if (!this.#wanted) return;
    const wait = this.#wait * (0.5 + Math.random() / 2);
    this.#wait = Math.min(this.#wait * 2, WAIT_MAX);
    this.#timer = setTimeout(() => this.now(), wait);
    this.calls.lost(wait);
  }
}
