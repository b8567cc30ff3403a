// Peer: Node's ws; what one says, everybody hears.
import { WebSocketServer, WebSocket } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, backlog: 4096, perMessageDeflate: false });
server.on("listening", () => console.log(`127.0.0.1:${server.address().port}`));
server.on("connection", (socket) => {
  socket.on("message", (data) => {
    for (const other of server.clients) {
      if (other.readyState === WebSocket.OPEN) other.send(data, { binary: false });
    }
  });
});
