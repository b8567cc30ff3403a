// Peer: N connections of one k6 user with k6/websockets. Receiving does nothing at all; k6 counts
// the messages itself, and the summary prints that count.
import { WebSocket } from "k6/websockets";

const count = Number(__ENV.COUNT);
const DIALS_MAX = 64; // dials under way at a time

export const options = {
  scenarios: {
    receive: { executor: "shared-iterations", vus: 1, iterations: 1, maxDuration: "6h" },
  },
};

export default function () {
  let dialed = 0;
  function dial() {
    if (dialed === count) return;
    dialed += 1;
    const socket = new WebSocket(__ENV.URL);
    socket.onopen = dial;
    socket.onmessage = () => {};
    socket.onerror = () => {};
  }
  for (let i = 0; i < Math.min(DIALS_MAX, count); i += 1) dial();
}

export function handleSummary(data) {
  const metric = data.metrics.ws_msgs_received;
  return { stdout: `${metric ? metric.values.count : 0}\n` };
}
