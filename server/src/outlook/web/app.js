// The page: log in, be in rooms, talk. Speaks yardstick.v1.json (protocols/src/yardstick/yardstick.proto).

import { Composer } from "./composer.js";
import { Deeds, wordsOf } from "./deeds.js";
import { $, countOf, listOf, picture, setText } from "./dom.js";
import { askBy, face, meet, retryFaces } from "./faces.js";
import { Inbox } from "./inbox.js";
import { Log, jumpWords } from "./log.js";
import { closePanels, preparePanels } from "./panels.js";
import { People } from "./people.js";
import { Places } from "./places.js";
import { PAGE, Room } from "./room.js";
import { Link, Lost, Refused } from "./wire.js";

/** How often figures on the page are brought up to date, in milliseconds. */
const TICK = 500;
/** How often it is told how far one has read, in milliseconds: in a room, and in a crowd. */
const READ_EVERY = 1_000;
const READ_EVERY_CROWD = 10_000;
const CROWD = 100;
/** How often the list of rooms is asked for, in milliseconds, and how long it is. */
const ROOMS_EVERY = 15_000;
const ROOMS_MAX = 200;
/** From this rate on it is shown. */
const RATE_SHOWN = 2;
/** A server that has too much to do is asked again after so long, in milliseconds. */
const BUSY_WAIT = 1_000;
const MEMORY = "yardstick";

const rooms = new Map();
/** What this server does not know, it has said so. */
const unknown = new Set();
let me = "";
let token = "";
let credentials = null;
let current = null;
let wantedRoom = "";
let isIn = false;
let drawn = 0;
let readAt = 0;
let isSelfMet = false;
let listedAt = -ROOMS_EVERY;

const link = new Link({ opened, lost, frame });
const log = new Log($("log"), {
  me: () => me, older, newer, moved: refresh, quote: around,
  tools: (room, message) => deeds.tools(room, message),
  react: (room, message, reaction) => deeds.react(room, message, reaction),
});
const people = new People({ me: () => me, menu: (room, name, button) => deeds.person(room, name, button) });
const places = new Places({ open, join });
const composer = new Composer({ send, edit, typing, retry, last: lastOwn });
const deeds = new Deeds({
  me: () => me, ask, can: (what) => !unknown.has(what),
  reply: (room, message) => composer.about({ kind: "reply", message }),
  edit: (room, message) => composer.about({ kind: "edit", message }),
  tell: (name) => open(inbox.with(name)), created: join, failed: (text) => composer.fail(text),
});

const inbox = new Inbox({ me: () => me, ask, open: () => current });

askBy((hash) => ask("avatar", { hash }));

async function ask(what, body) {
  try {
    return await link.ask(what, body);
  } catch (error) {
    if (error.code === "unknown_request") unknown.add(what);
    throw error;
  }
}

// --- Memory of this tab -------------------------------------------------------------------------

function remember() {
  const joined = [...rooms.values()].filter((room) => room.state !== "gone").map((room) => room.name);
  const open_ = current && !current.isDirect ? current.name : joined[0] ?? "";
  try {
    const { told, sent } = inbox;
    sessionStorage.setItem(MEMORY, JSON.stringify({ me, token, joined, current: open_, told, sent }));
  } catch {
    // A tab without storage works, until it is loaded anew.
  }
}

function recall() {
  try {
    return JSON.parse(sessionStorage.getItem(MEMORY)) ?? {};
  } catch {
    return {};
  }
}

// --- Coming and going ---------------------------------------------------------------------------

function showDoor(why = "") {
  isIn = false;
  link.stop();
  $("hall").hidden = true;
  $("door").hidden = false;
  $("enter").disabled = false;
  setText($("login-error"), why);
  document.title = "yardstick";
  $(me ? "password" : "name").focus();
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  credentials = { name: $("name").value, password: $("password").value };
  wantedRoom = $("first-room").value;
  $("enter").disabled = true;
  setText($("login-error"), "");
  link.start();
  link.now();
});

$("logout").addEventListener("click", async () => {
  try {
    await ask("revoke", { token });
  } catch {
    // Without a connection the token is forgotten, and ends by itself.
  }
  token = "";
  sessionStorage.removeItem(MEMORY);
  link.stop();
  // A new page: nothing of what was read stays in memory.
  location.reload();
});

async function opened() {
  try {
    const welcome = await ask("login", token ? { token } : credentials ?? {});
    await enter(welcome);
  } catch (error) {
    if (error instanceof Lost) return;
    if (!(error instanceof Refused)) throw error;
    if (error.code === "busy") return setTimeout(() => opened(), BUSY_WAIT);
    const wasToken = token !== "";
    token = "";
    $("name").value ||= me;
    showDoor(wasToken ? "Please log in again." : error.message);
  }
}

async function enter(welcome) {
  isIn = true;
  link.settle();
  if (me && me !== welcome.name) forgetAll();
  me = welcome.name;
  token = welcome.token ?? token;
  credentials = null;
  $("password").value = "";
  $("door").hidden = true;
  $("hall").hidden = false;
  $("banner").hidden = true;
  setText($("link"), "online");
  setText($("self-name"), me);
  $("self-face").replaceChildren(face(me));
  retryFaces();
  if (wantedRoom && !rooms.has(wantedRoom)) rooms.set(wantedRoom, new Room(wantedRoom));
  const first = rooms.get(wantedRoom) ?? current ?? rooms.values().next().value;
  wantedRoom = "";
  if (first && first !== current) open(first, false);
  await Promise.all([...rooms.values()].filter((room) => room.state !== "gone").map(reenter));
  for (const place of inbox.talks.values()) place.outbox.forEach((said) => deliver(place, said));
  await inbox.catchUp(welcome.told ?? 0).catch(() => {});
  refresh();
  remember();
  listRooms(true);
}

function forgetAll() {
  rooms.clear();
  inbox.forget();
  current = null;
}

function lost(wait) {
  for (const room of rooms.values()) {
    if (room.state === "in") room.state = "out";
    room.people.clear();
    room.typing.clear();
    room.peopleVersion += 1;
  }
  if (!isIn && !token) {
    setText($("login-error"), "The server cannot be reached.");
    link.stop();
    $("enter").disabled = false;
    return;
  }
  setText($("link"), "offline");
  const seconds = Math.max(1, Math.round(wait / 1000));
  setText($("banner-text"), `The connection was lost. Next try in about ${seconds} s; what you write waits.`);
  $("banner").hidden = false;
  refresh();
}

$("banner-now").addEventListener("click", () => link.now());

// --- Rooms --------------------------------------------------------------------------------------

/** Enters a room, for the first time or again: then what was missed comes with the answer. */
async function reenter(room) {
  const after = room.number;
  try {
    const joined = await ask("join", { room: room.name, after, history: PAGE, members: true, avatars: true, reads: true });
    room.state = "in";
    room.resume(joined, after);
    settlePeople(room, joined);
    room.outbox.forEach((said) => deliver(room, said));
    if (room.role) await deeds.learnRights(room);
  } catch (error) {
    if (!(error instanceof Refused)) return;
    room.state = "gone";
    room.why = error.message;
  }
  refresh();
}

function settlePeople(room, joined) {
  room.people.clear();
  for (const person of joined.people ?? []) {
    meet(person);
    room.arrive(person);
  }
  for (const read of joined.reads ?? []) {
    room.read(read.name, read.number ?? 0);
    if (read.name === me && room.seen === 0) room.seen = read.number ?? 0;
  }
  if (room.seen === 0) room.seen = room.number;
  room.role = joined.role ?? "";
  room.peopleVersion += 1;
  if (!isSelfMet && room.people.size <= CROWD) meetSelf(room);
}

/** The answer to a join lists the others only. */
async function meetSelf(room) {
  isSelfMet = true;
  try {
    const answer = await ask("members", { room: room.name });
    const self = (answer.people ?? []).find((person) => person.name === me);
    if (self) meet(self);
    $("self-face").replaceChildren(face(me));
    people.refresh(true);
  } catch {
    isSelfMet = false;
  }
}

function join(name) {
  const room = rooms.get(name) ?? new Room(name);
  rooms.set(name, room);
  open(room);
  places.offer(rooms);
  if (room.state === "in") return;
  room.state = "out";
  reenter(room).then(remember);
}

function open(place, isByHand = true) {
  current = place;
  $("hall").dataset.kind = place.isDirect ? "talk" : "room";
  closePanels(["side"]);
  place.following = place.isLive || place.following;
  log.show(place);
  log.follow();
  people.show(place);
  composer.show(place);
  history.replaceState(null, "", place.isDirect ? "#" : `#${encodeURIComponent(place.name)}`);
  if (isByHand) {
    remember();
    $("text").focus();
  }
  tick();
  refresh();
}

$("join").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("join-room").value;
  $("join-room").value = "";
  if (name) join(name);
});

$("leave").addEventListener("click", () => {
  const place = current;
  if (place.isDirect) inbox.talks.delete(place.name);
  else rooms.delete(place.name);
  if (!place.isDirect && place.state === "in") ask("leave", { room: place.name }).catch(() => {});
  const next = rooms.values().next().value ?? inbox.talks.values().next().value;
  if (next) open(next);
  else {
    current = null;
    $("hall").dataset.kind = "none";
    log.show(new Room(""));
    $("join-room").focus();
  }
  remember();
  listRooms(true);
  refresh();
});

async function listRooms(isNow = false) {
  const now = performance.now();
  if (!isIn || unknown.has("rooms") || (!isNow && now - listedAt < ROOMS_EVERY)) return;
  listedAt = now;
  try {
    const answer = await ask("rooms", { limit: ROOMS_MAX });
    places.offer(rooms, answer.rooms ?? []);
  } catch {
    // It is asked for again, unless the server does not know the request.
  }
}

// --- The past -----------------------------------------------------------------------------------

/** One page at a time for each room; `take` gets it if the room is still as it was. */
async function page(room, before, take, limit = PAGE) {
  if (room.loading || room.isDirect || room.state !== "in") return;
  room.loading = true;
  try {
    const answer = await ask("history", { room: room.name, before, limit });
    take(answer.messages ?? []);
  } catch (error) {
    if (error instanceof Refused) room.hasOlder = false;
  } finally {
    room.loading = false;
    refresh();
  }
}

function older(room) {
  if (room.first > 1) page(room, room.first, (messages) => room.prepend(messages));
  else if (room.hasOlder && room.first === 1) room.hasOlder = false;
}

function newer(room) {
  page(room, room.last + PAGE + 1, (messages) => room.append(messages));
}

/** To a message that is quoted, wherever it is. */
function around(room, number) {
  if (log.reveal(number)) return;
  page(room, number + PAGE / 2, (messages) => {
    room.following = false;
    room.replace(messages);
    log.render();
    log.reveal(number);
  });
}

$("jump").addEventListener("click", () => {
  if (current.isLive) return log.follow();
  page(current, 0, (messages) => {
    current.replace(messages);
    current.following = true;
  });
});

// --- Talking ------------------------------------------------------------------------------------

function send(place, text, replyTo) {
  const said = place.entrust(text, replyTo);
  place.following = true;
  if (!place.isLive) page(place, 0, (messages) => place.replace(messages));
  deliver(place, said);
  log.follow();
}

async function deliver(place, said) {
  if (!isIn || (!place.isDirect && place.state !== "in") || !place.outbox.includes(said)) return;
  said.error = "";
  try {
    if (place.isDirect) {
      const answer = await ask("tell", { to: [place.name], text: said.text, key: said.key });
      inbox.keep(place, said, Number(answer.atMs ?? Date.now()));
      remember();
      refresh();
    } else {
      const { text, key, replyTo } = said;
      await ask("say", { room: place.name, text, key, ...(replyTo ? { replyTo } : {}) });
    }
    place.settle(said);
  } catch (error) {
    if (error instanceof Lost) return;
    if (error.code === "busy") return setTimeout(() => deliver(place, said), BUSY_WAIT);
    said.error = error.message;
  } finally {
    composer.refresh();
  }
}

function retry(place, said) {
  deliver(place, said);
  composer.refresh();
}

async function edit(room, message, text) {
  try {
    await ask("edit", { room: room.name, number: message.number, text });
  } catch (error) {
    composer.fail(error.message);
  }
}

function lastOwn(room) {
  if (room.isDirect || unknown.has("edit")) return undefined;
  return room.messages.findLast((message) => message.sender === me && !message.deleted);
}

function typing(place) {
  if (!place.isDirect && place.state === "in") ask("typing", { room: place.name }).catch(() => {});
}

// --- What the server tells ----------------------------------------------------------------------

function frame(what, value) {
  const now = performance.now();
  if (what === "message" && !value.room) {
    inbox.hear(value, true);
    return refresh();
  }
  const room = rooms.get(value.room);
  if (what === "notice") return notice(room, value);
  if (!room || room.state !== "in") return;
  if (what === "message") room.hear(value, now);
  else if (what === "presence") presence(room, value);
  else if (what === "typing") room.types(value.name, now);
  else if (what === "read") room.read(value.name, value.number ?? 0);
  else if (what === "change") room.change(value);
  refresh();
}

function presence(room, { joined = [], left = [] }) {
  for (const name of left) room.depart(name);
  for (const person of joined) {
    meet(person);
    room.arrive(person);
  }
}

function notice(room, value) {
  const { what, name, role = "" } = value;
  if (!room) return listRooms(true);
  const words = wordsOf(value, me);
  if (words) room.note(words, Date.now());
  if (what === "configured") Object.assign(room, { isPrivate: value.private ?? false, slowMs: value.slowMs ?? 0 });
  if (what === "role") {
    if (role && role !== "none") room.rights.set(name, role);
    else room.rights.delete(name);
    if (name === me) room.role = room.rights.get(me) ?? "";
    if (name === me && room.isModerated) deeds.learnRights(room).then(refresh);
  }
  const isOut = name === me && (what === "kicked" || role === "banned" || (role === "none" && room.isPrivate));
  if (isOut && room.state === "in") {
    room.state = "gone";
    room.why = `${words}.`;
    room.people.clear();
    remember();
  } else if (room.state === "gone" && name === me && what === "role" && !["", "none", "banned"].includes(role)) {
    // Let in, after all.
    room.state = "out";
    reenter(room).then(remember);
  }
  room.peopleVersion += 1;
  deeds.refreshRights(room);
  refresh();
}

// --- The screen ---------------------------------------------------------------------------------

/** Draws at the next frame, however much happens until then. */
function refresh() {
  if (drawn) return;
  drawn = requestAnimationFrame(() => {
    drawn = 0;
    if (current) {
      log.render();
      const words = jumpWords(current);
      $("jump").hidden = !words;
      setText($("jump"), words);
    }
    look();
    drawHead();
    composer.refresh();
  });
}

/** What is before one's eyes is read. */
function look() {
  const isSeen = document.visibilityState === "visible" && current?.following && current.isLive;
  if (isSeen) current.look();
}

function drawHead() {
  const place = current;
  const unread = places.refresh(rooms, inbox.talks, place);
  const hidden = place && document.visibilityState === "hidden" ? place.unread : 0;
  const count = unread + hidden;
  document.title = `${count ? `(${count > 999 ? "999+" : count}) ` : ""}${place ? `${place.name} · ` : ""}yardstick`;
  setText($("title"), place?.name ?? "Join a room");
  if (!place) return;
  const facts = [place.isPrivate ? "private" : "", place.role, place.slowMs ? `slow mode ${place.slowMs / 1000} s` : ""];
  const state = place.state === "gone" ? place.why : facts.filter(Boolean).join(" · ");
  setText($("subtitle"), place.isDirect ? "direct messages" : state);
  $("settings-open").hidden = !place.role || unknown.has("rights");
  setText($("leave"), place.isDirect ? "Close" : "Leave");
}

function tick() {
  const now = performance.now();
  if (!isIn || !current) return;
  const rate = current.rate(now);
  $("rate").hidden = rate < RATE_SHOWN;
  setText($("rate"), `${countOf(Math.round(rate))} messages/s`);
  log.aloud(rate);
  const typists = current.typists(me, now);
  setText($("typing"), typists.length ? `${listOf(typists)} ${typists.length > 1 ? "are" : "is"} typing…` : "");
  people.refresh();
  tellRead(now);
  listRooms();
  if (document.visibilityState === "hidden") drawHead();
}

/** Tells how far one has read, seldom where many listen. */
function tellRead(now) {
  const every = current.people.size > CROWD ? READ_EVERY_CROWD : READ_EVERY;
  const isDue = now - readAt >= every && current.seen > current.readSent;
  if (!isDue || current.isDirect || current.state !== "in" || document.visibilityState !== "visible") return;
  readAt = now;
  current.readSent = current.seen;
  ask("read", { room: current.name, number: current.seen }).catch(() => {});
}

$("settings-open").addEventListener("click", () => deeds.settings(current));

preparePanels(() => people.refresh(true));
document.addEventListener("visibilitychange", refresh);
addEventListener("hashchange", () => {
  const name = roomOfAddress();
  if (isIn && name && name !== current?.name) join(name);
});

function roomOfAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function begin() {
  for (const [id, name] of [["side-picture", "menu"], ["settings-open", "settings"], ["people-picture", "people"]]) {
    $(id).append(picture(name));
  }
  setText($("host"), location.host);
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  $("plain").hidden = location.protocol === "https:" || isLocal;
  const memory = recall();
  me = memory.me ?? "";
  token = memory.token ?? "";
  inbox.told = memory.told ?? 0;
  inbox.sent = memory.sent ?? [];
  const address = roomOfAddress();
  if (address) $("first-room").value = address;
  setInterval(tick, TICK);
  if (!token) return showDoor();
  for (const name of memory.joined ?? []) rooms.set(name, new Room(name));
  wantedRoom = address || memory.current || "";
  link.start();
}

begin();
