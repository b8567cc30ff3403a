// Peer: what a person does in Artillery's Socket.IO and WebSocket engines. Enters the room, takes
// the time of each delivery from the text, and, if among the last to come, talks.
'use strict';

const number = (name) => Number(process.env[name]);
const [people, talkers, times] = [number('PEOPLE'), number('TALKERS'), number('TIMES')];
const [everyMs, stayMs, textBytes] = [number('EVERY_MS'), number('STAY_MS'), number('TEXT_BYTES')];
const MARK = 't=';
let arrived = 0;

const text = () => `${MARK}${Date.now()} `.padEnd(textBytes, '.');

function record(events, said) {
  const at = said.indexOf(MARK);
  if (at >= 0) events.emit('histogram', 'delivery', Date.now() - parseInt(said.slice(at + MARK.length), 10));
}

// Talks if it is one of the last to come, and leaves when the time is over.
function attend(say, done) {
  const talker = arrived++ - (people - talkers);
  if (talker >= 0) {
    let said = 0;
    const next = () => {
      say(text());
      said += 1;
      if (said < times) setTimeout(next, everyMs);
    };
    setTimeout(next, everyMs + (talker / talkers) * everyMs);
  }
  setTimeout(done, stayMs);
}

function attendRiver(context, events, done) {
  const socket = context.sockets[''];
  const name = `a${arrived}`;
  socket.on('says', (said) => record(events, said));
  socket.emit('room-join', 'live', name);
  attend((words) => socket.emit('event', { name, room: 'live', text: words }, () => {}), done);
}

function attendYardstick(context, events, done) {
  const name = `a${arrived}`;
  let id = 0;
  const ask = (what) => context.ws.send(JSON.stringify({ id: (id += 1), ...what }));
  context.ws.on('message', (data) => {
    const { message } = JSON.parse(data);
    if (message) record(events, message.text);
  });
  ask({ login: { name, password: name } });
  ask({ join: { room: 'live' } });
  attend((words) => ask({ say: { room: 'live', text: words } }), done);
}

module.exports = { attendRiver, attendYardstick };
