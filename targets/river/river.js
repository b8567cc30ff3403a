// The application of the River experiment, of our own writing: whoever joins a room is confirmed to
// itself and announced to all others there. Everything is set by environment variables.
'use strict';

const http = require('node:http');
const modules = process.env.RIVER_MODULES;
const { Server } = require(`${modules}/socket.io`);

const port = Number(process.env.RIVER_PORT);
const counts = { people: 0, joins: 0, leaves: 0, said: 0, deliveries: 0, upgrades: 0, polling: 0 };

const server = http.createServer((request, response) => {
  if (request.url !== '/stats') {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(counts));
});
server.keepAliveTimeout = 120_000;

const transports = { both: ['polling', 'websocket'], polling: ['polling'], websocket: ['websocket'] };
const redis = process.env.RIVER_REDIS_PORT;
const clients = [];
if (redis !== undefined) {
  const Redis = require(`${modules}/ioredis`);
  for (let count = 0; count < 2; count += 1) {
    const client = new Redis(Number(redis), '127.0.0.1');
    // Without its adapter the process is of no use: whoever watches sees it end.
    client.on('error', (error) => { throw error; });
    clients.push(client);
  }
}
const adapter = () => require(`${modules}/@socket.io/redis-adapter`).createAdapter(...clients);
const io = new Server(server, {
  transports: transports[process.env.RIVER_TRANSPORTS],
  pingInterval: Number(process.env.RIVER_PING_MS),
  pingTimeout: 60_000, // as published
  perMessageDeflate: process.env.RIVER_DEFLATE === 'on' ? { threshold: 0 } : false,
  // The library that answers browsers' requests for its own client is of no use here.
  serveClient: false,
  ...(clients.length > 0 && { adapter: adapter() }),
});

// How many others a broadcast to the room reaches in this process; all in it but its sender.
const others = (socket, room) => {
  const all = io.of('/').adapter.rooms.get(room);
  return all === undefined ? 0 : all.size - (all.has(socket.id) ? 1 : 0);
};
const isWord = (word) => typeof word === 'string' && word.length > 0 && word.length <= 1_000;

io.on('connection', (socket) => {
  counts.people += 1;
  counts.polling += Number(socket.conn.transport.name === 'polling');
  socket.conn.on('upgrade', () => { counts.upgrades += 1; });

  socket.on('room-join', (room, name) => {
    if (!isWord(room) || !isWord(name)) return;
    counts.joins += 1;
    socket.join(room);
    socket.emit('event', `Joined room ${room}`);
    counts.deliveries += others(socket, room);
    socket.to(room).emit('event', `${name} joined room ${room}`);
  });

  socket.on('room-leave', (room, done) => {
    counts.leaves += 1;
    socket.leave(room);
    if (typeof done === 'function') done();
  });

  // What somebody says goes to all others in the room.
  socket.on('event', (said, done) => {
    if (!isWord(said?.name) || !isWord(said?.room)) return;
    counts.said += 1;
    counts.deliveries += others(socket, said.room);
    socket.to(said.room).emit('says', `${said.name} says: ${String(said.text ?? 'hello!')}`);
    if (typeof done === 'function') done();
  });

  socket.on('disconnect', () => { counts.people -= 1; });
});

process.on('SIGTERM', () => process.exit(0));
// Whoever is answered is connected: what was subscribed to before has arrived.
Promise.all(clients.map((client) => client.ping())).then(() => {
  server.listen({ port, host: '127.0.0.1', backlog: 4096 });
});
