// Peer: each person is a user of k6 with a socket of its own. Socket.IO is spoken by hand, since k6
// has none. Takes the time of each delivery from the text; the last people talk.
import exec from "k6/execution";
import { Trend } from "k6/metrics";
import { WebSocket } from "k6/websockets";

const number = (name) => Number(__ENV[name]);
const [people, talkers, times] = [number("PEOPLE"), number("TALKERS"), number("TIMES")];
const [everyMs, stayMs, textBytes] = [number("EVERY_MS"), number("STAY_MS"), number("TEXT_BYTES")];
const arrivalsPerS = number("ARRIVALS_PER_S");
const river = __ENV.SERVER === "river";
const MARK = "t=";
const delivery = new Trend("delivery", true);

export const options = {
  summaryTrendStats: ["med", "count"],
  scenarios: {
    attend: { executor: "per-vu-iterations", vus: people, iterations: 1, maxDuration: "1h" },
  },
};

const text = () => `${MARK}${Date.now()} `.padEnd(textBytes, ".");

export default function () {
  const person = exec.vu.idInTest - 1;
  const name = `k${person}`;
  let id = 0;
  let socket;

  function record(said) {
    const at = said.indexOf(MARK);
    if (at < 0) return;
    delivery.add(Date.now() - parseInt(said.slice(at + MARK.length), 10));
  }

  function talk(say) {
    let said = 0;
    const next = () => {
      say(text());
      said += 1;
      if (said < times) setTimeout(next, everyMs);
    };
    const talker = person - (people - talkers);
    if (talker >= 0) setTimeout(next, everyMs + (talker / talkers) * everyMs);
    setTimeout(() => socket.close(), stayMs);
  }

  function attendRiver() {
    socket = new WebSocket(`${__ENV.URL.replace("http", "ws")}/socket.io/?EIO=4&transport=websocket`);
    socket.onmessage = ({ data }) => {
      if (data.startsWith("42")) {
        const [event, said] = JSON.parse(data.slice(2));
        if (event === "says") record(said);
      } else if (data.startsWith("40")) {
        socket.send(`42${JSON.stringify(["room-join", "live", name])}`);
        talk((words) => {
          const event = ["event", { name, room: "live", text: words }];
          socket.send(`42${(id += 1)}${JSON.stringify(event)}`);
        });
      } else if (data.startsWith("0")) {
        socket.send("40");
      } else if (data === "2") {
        socket.send("3");
      }
    };
  }

  function attendYardstick() {
    socket = new WebSocket(__ENV.URL, "yardstick.v1.json");
    const ask = (what) => socket.send(JSON.stringify({ id: (id += 1), ...what }));
    socket.onmessage = ({ data }) => {
      const { message } = JSON.parse(data);
      if (message) record(message.text);
    };
    socket.onopen = () => {
      ask({ login: { name, password: name } });
      ask({ join: { room: "live" } });
      talk((words) => ask({ say: { room: "live", text: words } }));
    };
  }

  setTimeout(river ? attendRiver : attendYardstick, (person * 1000) / arrivalsPerS);
}

export function handleSummary(data) {
  const { count, med } = data.metrics.delivery.values;
  return { stdout: `${JSON.stringify({ received: count, p50: med })}\n` };
}
