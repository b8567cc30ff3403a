// Starts River with everything it needs: one process by itself, or several behind a proxy, with or
// without Redis between them. Ends as soon as one of them ends, and takes all with it.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');

const env = process.env;
const processes = Number(env.RIVER_PROCESSES);
const hasRedis = env.RIVER_ADAPTER === 'redis';
const ports = { chat: env.RIVER_PORT, stats: env.RIVER_STATS_PORT, redis: env.RIVER_REDIS };
// Several processes stand behind a proxy; one is reached directly.
const isProxied = processes > 1;
const behind = [env.RIVER_FIRST_PORT, env.RIVER_SECOND_PORT].slice(0, processes);
const own = isProxied ? behind : [ports.chat];
const LOOK_EVERY_MS = 20;
const children = [];
let isStopping = false;

const stop = (code) => {
  if (isStopping) return;
  isStopping = true;
  process.exitCode = code;
  for (const child of children) child.kill('SIGTERM');
  // Nothing here needs long to end; what is left goes with this process.
  setTimeout(() => process.exit(code), 2_000).unref();
  if (ends !== undefined) ends.close();
};
let ends;

// A program that does not outlive this one, whatever becomes of it.
const start = (what, more = {}) => {
  if (isStopping) return;
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...what],
    { stdio: ['ignore', 'inherit', 'inherit'], env: { ...env, ...more } });
  children.push(child);
  const end = (why) => {
    if (!isStopping) console.error(`${what[0]} ended (${why})`);
    stop(1);
  };
  child.on('error', (error) => end(error.message));
  child.on('exit', (code, signal) => end(code ?? signal));
};

// Whether somebody listens on a port.
const answers = (port) => new Promise((resolve) => {
  const socket = net.connect(Number(port), '127.0.0.1');
  socket.on('connect', () => { socket.destroy(); resolve(true); });
  socket.on('error', () => resolve(false));
});
const listening = async (port) => {
  while (!isStopping && !(await answers(port))) {
    await new Promise((resolve) => { setTimeout(resolve, LOOK_EVERY_MS); });
  }
};

// A person stays at the process that was its first: by a cookie if it keeps cookies, else by the
// port it comes from, so that all requests of one connection go the same way.
const proxy = () => `
defaults
  mode http
  timeout connect 10s
  timeout client 120s
  timeout server 120s
  timeout tunnel 1d
frontend chat
  bind 127.0.0.1:${ports.chat}
  use_backend figures if { path /stats }
  default_backend river
backend river
  balance hash src_port
  hash-type map-based sdbm avalanche
  cookie river insert indirect nocache
${own.map((port, place) => `  server river${place} 127.0.0.1:${port} cookie ${place}`).join('\n')}
backend figures
  server figures 127.0.0.1:${ports.stats}
`;

// The sum of what the processes count.
const figures = (_, response) => {
  const ask = (port) => fetch(`http://127.0.0.1:${port}/stats`).then((answer) => answer.json());
  Promise.all(own.map(ask)).then((all) => {
    const sum = {};
    for (const counts of all) {
      for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
    }
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(sum));
  }, () => response.writeHead(503).end());
};

const main = async () => {
  if (hasRedis) {
    start(['redis-server', '--port', ports.redis, '--bind', '127.0.0.1', '--save', '',
      '--appendonly', 'no', '--dir', __dirname, '--loglevel', 'warning']);
    await listening(ports.redis);
  }
  const redis = hasRedis ? { RIVER_REDIS_PORT: ports.redis } : {};
  const node = [process.execPath, ...process.execArgv, `${__dirname}/river.js`];
  for (const port of own) start(node, { ...redis, RIVER_PORT: port });
  if (!isProxied) return;
  for (const port of own) await listening(port);
  if (isStopping) return;
  ends = http.createServer(figures).listen(Number(ports.stats), '127.0.0.1');
  fs.writeFileSync(`${__dirname}/haproxy.cfg`, proxy());
  // In front of everything, and last: that it listens says that all is ready.
  start(['haproxy', '-db', '-q', '-f', `${__dirname}/haproxy.cfg`]);
};

if (processes === 1 && !hasRedis) {
  require('./river.js');
} else {
  process.on('SIGTERM', () => stop(0));
  main();
}
