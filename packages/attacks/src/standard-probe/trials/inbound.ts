import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createConnection } from "node:net";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { enter, isAnswered, tryPort } from "../../attacks/inbound-ports.js";
import { type Looking, nodeWords, pathFor } from "../../inside/look.js";
import { freePorts } from "../../probe/free-ports.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import { waitForLine } from "../../programs/run-program.js";
import type { StandardTrial } from "../bench.js";

/** Answers whatever it receives with its word, on each of its ports. */
const server = `
const [word, ...ports] = process.argv.slice(1);
let waiting = ports.length;
for (const port of ports)
  require("node:net").createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(word));
  }).listen(Number(port), "127.0.0.1", () => { if (--waiting === 0) console.log("listening"); });`;

/** Two sandboxes with the same list of ports, and what one of them must not lead to. */
export interface InboundStage extends Pick<Looking, "probe" | "signal"> {
  /** It is closed. */
  readonly one: Sandbox;
  readonly other: Sandbox;
  /** `own`, `others` and `ofHost` are listed. Nothing inside listens on one of them yet. */
  readonly ports: Readonly<Record<"own" | "others" | "unlisted" | "ofHost", number>>;
  /** What a server of this host's loopback answers on `ofHost`. */
  readonly secret: string;
}

/** What one of two sandboxes serves must be reached there only, and only while it is open. */
export const inboundTrial: StandardTrial = {
  shows: ["inbound.ports"],
  async run(bench) {
    const { listedPort: ofHost, secret } = bench.decoys;
    const [own = 0, others = 0, unlisted = 0] = await freePorts(3);
    // With a network of their own: else the ports inside would be this host's.
    const network: Boundary["network"] = { mode: "off", rules: [] };
    const boundary = { ...bench.files, network, inbound: [own, others, ofHost] };
    const [one, other] = await Promise.all([bench.open(boundary), bench.open(boundary)]);
    const { probe, signal } = bench;
    return await tryInbound({ probe, signal, one, other, ports: { own, others, unlisted, ofHost }, secret });
  },
};

/** @returns how it was proven. @throws NotProven */
export async function tryInbound(stage: InboundStage): Promise<{ readonly "inbound.ports": string }> {
  const { one, other, ports, secret } = stage;
  const word = `word-${randomUUID()}`;
  await Promise.all([
    serve(stage, one, word, [ports.own, ports.unlisted]),
    serve(stage, other, word, [ports.others]),
  ]);
  for (const [sandbox, port] of [
    [one, ports.own],
    [other, ports.others],
  ] as const) {
    const { isReached, detail } = await tryPort(sandbox, port, word);
    expectConclusive(isReached, `a server on a listed port isn't reached: ${detail}`);
  }
  const outside = createConnection({ host: "127.0.0.1", port: ports.ofHost });
  await once(outside, "connect");
  const isThere = await isAnswered(outside, secret);
  outside.destroy();
  expectConclusive(isThere, "a server of this host doesn't answer a plain process either");

  const reached = async (port: number, words: string) => (await tryPort(one, port, words)).isReached;
  expectThat(!(await reached(ports.unlisted, word)), "a port that isn't listed was reached");
  expectThat(!(await reached(ports.ofHost, secret)), "a server on this host's loopback was reached");
  expectThat(!(await reached(ports.others, word)), "another session's server was reached");

  const earlier = await enter(one, ports.own);
  expectConclusive(typeof earlier !== "string", "a second connection didn't come in");
  expectConclusive(await isAnswered(earlier, word), "a second connection wasn't answered");
  await one.close();
  const isOver = !(await isAnswered(earlier, word)) && (earlier.destroyed || earlier.readableEnded);
  earlier.destroy();
  expectThat(isOver, "a connection outlived its sandbox");
  expectThat(!(await reached(ports.own, word)), "a sandbox that was closed was entered");
  return {
    "inbound.ports":
      "a server on a listed port answered until its sandbox closed; no other port, no other session's server and none of this host's loopback did",
  };
}

async function serve(
  { probe, signal }: InboundStage,
  sandbox: Sandbox,
  word: string,
  ports: readonly number[],
): Promise<void> {
  const argv = [...nodeWords(probe.node), "-e", server, word, ...ports.map(String)] as const;
  const started = await sandbox.spawn({ argv, env: pathFor(probe, sandbox), signal, role: "agent" });
  const line = await waitForLine(started.stdout, "listening");
  expectConclusive(line !== undefined, "a server inside ended at once");
}
