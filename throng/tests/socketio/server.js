// A room of Socket.IO 2 or 4 in which messages carry a picture: what throng's tests talk to.
'use strict';

const http = require('node:http');
const [module_, port, namespace, recovery] = process.argv.slice(2);
const picture = Buffer.from([0, 1, 2, 255]);

const server = http.createServer((_, response) => { response.writeHead(404).end(); });
const options = { pingInterval: 300, pingTimeout: 5_000, allowEIO3: true, serveClient: false };
// Milliseconds for which a lost conversation is kept; none by default.
if (Number(recovery) > 0) {
  options.connectionStateRecovery = { maxDisconnectionDuration: Number(recovery) };
}
const library = require(module_);
const io = new (library.Server ?? library)(server, options);

io.of(namespace).on('connection', (socket) => {
  socket.on('join', (room, done) => {
    socket.join(room);
    socket.to(room).emit('joined', room);
    done({ ok: true });
  });
  socket.on('leave', (room, done) => { socket.leave(room); done(); });
  socket.on('message', (said, done) => {
    socket.to(said.room).emit('message', { ...said, picture });
    done({ ok: true, picture });
  });
  socket.on('history', (room, limit, done) => done(limit === 20 ? 'refused by us' : []));
});

server.listen(Number(port), '127.0.0.1');
