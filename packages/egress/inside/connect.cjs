// Runs inside a sandbox: joins standard input and output with a host and port by way of the boundary's proxy, for programs that
// let another one connect for them, such as OpenSSH with its ProxyCommand.
"use strict";
const { connect } = require("node:net");

const LONGEST_ANSWER = 32 * 1024;
const [host = "", port = ""] = process.argv.slice(2);
const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
const proxy = new URL(process.env.HTTPS_PROXY ?? "http://127.0.0.1:3128");

function fail(reason) {
  process.stderr.write(`${target}: ${reason}\n`, () => process.exit(1));
}

let answer = Buffer.alloc(0);
const server = connect({ host: proxy.hostname, port: Number(proxy.port), allowHalfOpen: true });
const onEnd = () => fail(messageOf(answer));
const onError = (error) => fail(`the boundary's proxy doesn't answer (${error.code})`);
server.on("error", onError);
server.on("end", onEnd);
server.on("data", function onData(chunk) {
  answer = Buffer.concat([answer, chunk]);
  const end = answer.indexOf("\r\n\r\n");
  if (end === -1) {
    if (answer.length > LONGEST_ANSWER) fail("the boundary's proxy gave no answer");
    return;
  }
  // A refusal ends with its reason.
  if (!/^HTTP\/1\.[01] 200 /.test(answer.toString("latin1"))) {
    if (answer.length > LONGEST_ANSWER) onEnd();
    return;
  }
  server.off("data", onData);
  server.off("end", onEnd);
  server.off("error", onError);
  server.on("error", () => process.exit(1));
  process.stdout.on("error", () => process.exit(1));
  // Node.js never closes its standard output itself.
  server.once("end", () => process.stdout.write("", () => process.exit()));
  server.pause();
  server.unshift(answer.subarray(end + 4));
  process.stdin.pipe(server).pipe(process.stdout);
});
server.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);

/** The sentence in the proxy's own answer. */
function messageOf(response) {
  try {
    return JSON.parse(response.subarray(response.indexOf("\r\n\r\n") + 4)).message;
  } catch {
    return "the boundary's proxy closed the connection";
  }
}
