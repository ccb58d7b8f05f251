#!/usr/bin/env node
import { homedir } from "node:os";
import { Readable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk/unstable";
import { demoAgent } from "./agent.js";
import { Lifetime } from "./lifetime.js";
import { SessionStore } from "./sessions.js";

const lifetime = new Lifetime();

// If the client is gone, the next write fails with an EPIPE event; without a listener Node would print a stack.
process.stdout.on("error", () => lifetime.end(0));

const output = new WritableStream<Uint8Array>({
  write: (chunk) =>
    new Promise((resolve, reject) => {
      process.stdout.write(chunk, (error) => (error ? reject(error) : resolve()));
    }),
});

const asksFirst = process.argv.includes("--ask");
const connection = demoAgent(new SessionStore(homedir()), lifetime, asksFirst).connect(
  ndJsonStream(output, Readable.toWeb(process.stdin)),
);
await connection.closed;
lifetime.end(0);
