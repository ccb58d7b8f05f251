// Attempts to reach destinations where a platform's own proxy may answer for them: look.cjs makes them.
"use strict";
module.exports = (() => {
  const fs = require("node:fs");
  const net = require("node:net");
  const os = require("node:os");

  /** What a proxy answers for a destination that it doesn't let through. */
  const refusals = new Set([403, 407, 502, 503, 504, 511]);

  /** The system's own lookup can't be cancelled, and would hold this program until its name servers time out. */
  async function addressesOf(host, limitMs) {
    const { Resolver } = require("node:dns").promises;
    const resolver = new Resolver({ timeout: Math.ceil(limitMs / 2), tries: 1 });
    const timer = setTimeout(() => resolver.cancel(), limitMs);
    try {
      return await resolver.resolve4(host);
    } finally {
      clearTimeout(timer);
    }
  }

  /** What `ready` reports of a socket within the limit; null for an error or silence. */
  function reachBy(socket, limitMs, ready) {
    return new Promise((resolve) => {
      let isOver = false;
      const end = (how) => {
        if (isOver) return;
        isOver = true;
        clearTimeout(timer);
        resolve(how);
        if (socket.destroy === undefined) socket.close();
        else socket.destroy();
      };
      const timer = setTimeout(() => end(null), limitMs);
      socket.on("error", () => end(null));
      socket.once("close", () => {
        clearTimeout(timer);
        resolve(null);
      });
      ready(socket, end);
    });
  }

  function connectTo({ host, port, limitMs }) {
    const lookup = (name, { all }, done) => {
      addressesOf(name, limitMs).then(
        ([address]) => (all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)),
        (error) => done(error),
      );
    };
    return net.connect({ host, port, lookup });
  }

  /** What follows a connection, by its port: a platform's proxy takes every connection to the web's ports. */
  const conversations = new Map([
    [
      443,
      ({ host }, socket, end) =>
        socket.once("connect", () => {
          // Loaded only where a connection is accepted: it takes longer than all the rest of this program.
          const servername = net.isIP(host) ? {} : { servername: host };
          const secure = require("node:tls").connect({ socket, rejectUnauthorized: false, ...servername });
          secure.once("secureConnect", () => end("TLS handshake"));
          secure.once("error", () => end(null));
          secure.once("close", () => end(null));
        }),
    ],
    [
      80,
      ({ host }, socket, end) => {
        let answer = "";
        socket.once("connect", () =>
          socket.write(`HEAD / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
        );
        socket.on("data", (data) => {
          answer += data.toString("latin1");
          const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1];
          if (status !== undefined) end(refusals.has(Number(status)) ? null : `HTTP ${status}`);
          else if (answer.length > 64) end("an answer that isn't HTTP");
        });
      },
    ],
  ]);

  return {
    /** On the web's ports only what answers there was reached; elsewhere a connection is enough. */
    answer(target) {
      const converse =
        conversations.get(target.port) ??
        ((_target, socket, end) => socket.once("connect", () => end("connected")));
      return reachBy(connectTo(target), target.limitMs, (socket, end) => converse(target, socket, end));
    },
    /** A query for the root's name servers: a resolver answers it, and any answer will do. */
    datagram({ host, port, limitMs }) {
      const socket = require("node:dgram").createSocket(net.isIPv6(host) ? "udp6" : "udp4");
      return reachBy(socket, limitMs, (_socket, end) => {
        socket.once("message", () => end("a datagram was answered"));
        socket.connect(port, host, (error) => {
          if (error) end(null);
          else
            socket.send(Buffer.from("a17b010000010000000000000000020001", "hex"), (failed) => {
              if (failed) end(null);
            });
        });
      });
    },
    /** Asks the name servers, not `/etc/hosts`: a query that gets out carries data. */
    query: async ({ host, limitMs }) => `resolved to ${(await addressesOf(host, limitMs)).length} addresses`,
    /** Which ports of the default routes' gateways accept a connection: `10.0.0.1:80 connected, …`. */
    async gateway({ ports, limitMs }) {
      // As the kernel lists them: the address in hexadecimal, its last byte first.
      const gateways = fs
        .readFileSync("/proc/net/route", "utf8")
        .split("\n")
        .map((line) => line.split("\t"))
        .filter(([, destination, gateway]) => destination === "00000000" && gateway !== "00000000")
        .map(([, , gateway]) => Buffer.from(gateway, "hex").reverse().join("."));
      const tried = gateways.flatMap((host) =>
        ports.map(async (port) =>
          (await this.answer({ host, port, limitMs })) === null ? [] : [`${host}:${port} connected`],
        ),
      );
      return (await Promise.all(tried)).flat().join(", ") || null;
    },
    links() {
      const names = Object.keys(os.networkInterfaces());
      return names.filter((name) => name !== "lo").join() || null;
    },
    /** The router of the default route, which often is the host. */
    router() {
      const routes = fs
        .readFileSync("/proc/net/route", "utf8")
        .split("\n")
        .map((line) => line.split(/\s+/));
      const [, , router] =
        routes.find(([, target, via]) => target === "00000000" && via !== "00000000") ?? [];
      return router === undefined ? null : Buffer.from(router, "hex").reverse().join(".");
    },
    /** IPv6 addresses with more than link scope. Rules for IPv4 don't apply to them. */
    address6() {
      const found = Object.values(os.networkInterfaces())
        .flat()
        .filter(
          ({ family, internal, address }) => family === "IPv6" && !internal && !/^fe[89ab]/i.test(address),
        );
      return found.map(({ address }) => address).join(", ") || null;
    },
  };
})();
