// Peer: N connections with Node's `ws`; counts messages and prints the count when all have closed.
import WebSocket from "ws";

const [url, count] = [process.argv[2], Number(process.argv[3])];
const DIALS_MAX = 64; // dials under way at a time
let dialed = 0;
let closed = 0;
let messages = 0;

function dial() {
  if (dialed === count) return;
  dialed += 1;
  const socket = new WebSocket(url, { perMessageDeflate: false });
  socket.on("open", dial);
  socket.on("message", () => {
    messages += 1;
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed += 1;
    if (closed === count) console.log(messages);
  });
}

for (let i = 0; i < Math.min(DIALS_MAX, count); i += 1) dial();
