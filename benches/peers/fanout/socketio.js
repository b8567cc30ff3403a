// Peer: Socket.IO over WebSocket; the event "say" goes to everybody.
import { createServer } from "node:http";
import { Server } from "socket.io";

const http = createServer();
const day = 24 * 3600 * 1000;
const server = new Server(http, { transports: ["websocket"], pingInterval: day, pingTimeout: day });
server.on("connection", (socket) => {
  socket.on("say", (text) => server.emit("say", text));
});
http.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
  console.log(`127.0.0.1:${http.address().port}`);
});
