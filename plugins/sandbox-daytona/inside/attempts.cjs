// Runs in a sandbox: tries to reach destinations, and prints what each attempt came to as one line of JSON.
// Arguments: {"attempts": [{"id", "kind": "tls" | "http" | "connect" | "lookup", "host", "port"}], "limitMs"}.
"use strict";
const { Resolver } = require("node:dns").promises;
const net = require("node:net");
const tls = require("node:tls");

const { attempts, limitMs } = JSON.parse(process.argv[process.argv.length - 1]);
// What a proxy answers for a destination that it doesn't let through.
const refusals = new Set([403, 407, 502, 503, 504, 511]);

// The system's own lookup can't be cancelled, and would hold this program until its name servers time out.
const resolve = async (host) => {
  const resolver = new Resolver({ timeout: Math.ceil(limitMs / 2), tries: 1 });
  const timer = setTimeout(() => resolver.cancel(), limitMs);
  try {
    return await resolver.resolve4(host);
  } finally {
    clearTimeout(timer);
  }
};
const lookup = (host, options, done) => {
  resolve(host).then(
    ([address]) => (options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)),
    (error) => done(error),
  );
};

const socketAttempt = (open, ready) =>
  new Promise((resolve) => {
    let socket;
    const end = (reached, how) => {
      clearTimeout(timer);
      socket?.destroy();
      resolve({ reached, how });
    };
    const timer = setTimeout(() => end(false, `no answer in ${limitMs} ms`), limitMs);
    socket = open();
    socket.on("error", (error) => end(false, error.code ?? error.message));
    socket.on("close", () => end(false, "closed without an answer"));
    ready(socket, end);
  });

const kinds = {
  tls: ({ host, port }) =>
    socketAttempt(
      () =>
        tls.connect({
          host,
          port,
          lookup,
          rejectUnauthorized: false,
          ...(net.isIP(host) ? {} : { servername: host }),
        }),
      (socket, end) => socket.on("secureConnect", () => end(true, "TLS handshake")),
    ),
  http: ({ host, port }) =>
    socketAttempt(
      () => net.connect({ host, port, lookup }),
      (socket, end) => {
        let answer = "";
        socket.on("connect", () =>
          socket.write(`HEAD / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
        );
        socket.on("data", (data) => {
          answer += data.toString("latin1");
          const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer);
          if (status !== null) end(!refusals.has(Number(status[1])), `HTTP ${status[1]}`);
          else if (answer.length > 64) end(true, "an answer that isn't HTTP");
        });
      },
    ),
  connect: ({ host, port }) =>
    socketAttempt(
      () => net.connect({ host, port, lookup }),
      (socket, end) => socket.on("connect", () => end(true, "connected")),
    ),
  // Asks the name servers, not `/etc/hosts`: a query that gets out carries data.
  async lookup({ host }) {
    try {
      return { reached: true, how: `resolved to ${(await resolve(host)).length} addresses` };
    } catch (error) {
      return { reached: false, how: error.code ?? error.message };
    }
  },
};

void Promise.all(attempts.map(async (attempt) => [attempt.id, await kinds[attempt.kind](attempt)])).then(
  (results) => {
    process.stdout.write(`${JSON.stringify(Object.fromEntries(results))}\n`);
  },
);
