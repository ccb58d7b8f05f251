// Runs inside a jail when Perl isn't there: puts the jail's own loopback through to the session's unix socket. Each
// argument is an address and port of the host's loopback, answered inside at the same ones, by way of the proxy.
// With "inbound" among them, it also waits at a second socket until the runner names a port of the jail's loopback.
"use strict";
const { once } = require("node:events");
const { closeSync, writeSync } = require("node:fs");
const { connect, createServer } = require("node:net");

const PORT = 3128;
const CHANNEL = "/run/ambit/channel.sock";
const INBOUND = "/run/ambit/inbound.sock";
const LONGEST_ANSWER = 32 * 1024;

/** Calls back with a connection to the channel that the client's bytes may follow. Settles when it listens. */
function serve(host, port, open) {
  // noDelay: the end of an answer that comes in two pieces would wait for the client's delayed ACK, 40 ms.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const channel = connect({ path: CHANNEL, allowHalfOpen: true });
    const cut = () => {
      client.destroy();
      channel.destroy();
    };
    client.on("error", cut);
    channel.on("error", cut);
    open(channel, cut, () => client.pipe(channel).pipe(client));
  });
  return once(server.listen(port, host), "listening");
}

/** Asks the proxy for a destination, and goes on when it agrees. */
function tunnel(target) {
  return (channel, cut, join) => {
    let answer = Buffer.alloc(0);
    const onData = (chunk) => {
      answer = Buffer.concat([answer, chunk]);
      const end = answer.indexOf("\r\n\r\n");
      if (end === -1 && answer.length < LONGEST_ANSWER) return;
      channel.off("data", onData);
      channel.off("end", cut);
      if (!/^HTTP\/1\.[01] 200 /.test(answer.toString("latin1"))) return cut();
      channel.pause();
      channel.unshift(answer.subarray(end + 4));
      join();
    };
    channel.on("data", onData);
    channel.on("end", cut);
    channel.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  };
}

/** Waits to be asked for a port; joins the runner to what listens there, and waits again. */
function waitForRunner() {
  const asked = connect({ path: INBOUND, allowHalfOpen: true });
  let question = Buffer.alloc(0);
  asked.on("error", () => asked.destroy());
  const onEnd = () => asked.destroy();
  asked.once("end", onEnd);
  asked.on("data", function onData(chunk) {
    question = Buffer.concat([question, chunk]);
    if (question.length < 2) return;
    asked.off("data", onData);
    asked.off("end", onEnd);
    asked.pause();
    asked.unshift(question.subarray(2));
    letIn(asked, question.readUInt16BE(), ["127.0.0.1", "::1"]);
    waitForRunner();
  });
}

function letIn(asked, port, [host, ...others]) {
  if (host === undefined) return void asked.end(Buffer.from([0]));
  const server = connect({ host, port, allowHalfOpen: true, noDelay: true });
  const next = () => letIn(asked, port, others);
  server.once("error", next);
  server.once("connect", () => {
    server.off("error", next);
    server.on("error", () => asked.destroy());
    asked.on("error", () => server.destroy());
    asked.write(Buffer.from([1]));
    asked.pipe(server).pipe(asked);
  });
}

const isInbound = process.argv.includes("inbound", 2);
const listening = [serve("127.0.0.1", PORT, (_channel, _cut, join) => join())];
for (const target of process.argv.slice(2).filter((word) => word !== "inbound")) {
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(target);
  listening.push(serve(host, Number(port), tunnel(target)));
}
Promise.all(listening).then(
  () => {
    // Whoever started this waits for the word, and for the end of this pipe.
    writeSync(4, "up\n");
    closeSync(4);
    if (isInbound) waitForRunner();
  },
  () => process.exit(1),
);
