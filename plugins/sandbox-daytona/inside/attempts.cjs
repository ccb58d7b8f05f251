// Runs in a sandbox: tries to reach destinations, and prints what each attempt came to as one line of JSON.
// Arguments: {"attempts": [{"id", "kind": "tls" | "http" | "connect" | "datagram" | "lookup", "host", "port"}, or
// {"id", "kind": "gateway", "ports"}, or {"id", "kind": "address6"}], "limitMs"}.
"use strict";
const dgram = require("node:dgram");
const { Resolver } = require("node:dns").promises;
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");

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

/** A platform's proxy takes every connection to the web's ports: only what answers there was reached. */
const kindOf = (port) => (port === 443 ? "tls" : port === 80 ? "http" : "connect");

/** Of IPv4, as the kernel lists them: the address in hexadecimal, its last byte first. */
const defaultGateways = () =>
  fs
    .readFileSync("/proc/net/route", "utf8")
    .split("\n")
    .map((line) => line.split("\t"))
    .filter(([, destination, gateway]) => destination === "00000000" && gateway !== "00000000")
    .map(([, , gateway]) =>
      gateway
        .match(/../g)
        .reverse()
        .map((byte) => Number.parseInt(byte, 16))
        .join("."),
    );

const kinds = {
  tls: ({ host, port }) =>
    socketAttempt(
      () => net.connect({ host, port, lookup }),
      (socket, end) =>
        socket.on("connect", () => {
          // Loaded only where a connection is accepted: it takes longer than all the rest of this program.
          const tls = require("node:tls");
          const servername = net.isIP(host) ? {} : { servername: host };
          const secure = tls.connect({ socket, rejectUnauthorized: false, ...servername });
          secure.on("secureConnect", () => end(true, "TLS handshake"));
          secure.on("error", (error) => end(false, error.code ?? error.message));
          secure.on("close", () => end(false, "closed without an answer"));
        }),
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
  // A query for the root's name servers: a resolver answers it, and any answer will do.
  datagram: ({ host, port }) =>
    new Promise((resolve) => {
      const socket = dgram.createSocket(net.isIPv6(host) ? "udp6" : "udp4");
      const end = (reached, how) => {
        clearTimeout(timer);
        socket.close();
        resolve({ reached, how });
      };
      const timer = setTimeout(() => end(false, `no answer in ${limitMs} ms`), limitMs);
      socket.once("message", () => end(true, "a datagram was answered"));
      socket.once("error", (error) => end(false, error.code ?? error.message));
      socket.connect(port, host, (error) => {
        if (error) return end(false, error.code ?? error.message);
        socket.send(Buffer.from("a17b010000010000000000000000020001", "hex"), (failed) => {
          if (failed) end(false, failed.code ?? failed.message);
        });
      });
    }),
  async gateway({ ports }) {
    const gateways = defaultGateways();
    const tried = gateways.flatMap((host) =>
      ports.map(async (port) => ({ host, port, ...(await kinds[kindOf(port)]({ host, port })) })),
    );
    const at = (await Promise.all(tried))
      .filter(({ reached }) => reached)
      .map(({ host, port }) => ({ host, port }));
    const how = at.map(({ host, port }) => `${host}:${port} connected`).join(", ");
    return { reached: at.length > 0, how: how || `${gateways.join(", ") || "none"}: nothing connected`, at };
  },
  async address6() {
    const found = Object.values(os.networkInterfaces())
      .flat()
      .filter(
        ({ family, internal, address }) => family === "IPv6" && !internal && !/^fe[89ab]/i.test(address),
      );
    return { reached: found.length > 0, how: found.map(({ address }) => address).join(", ") || "none" };
  },
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
