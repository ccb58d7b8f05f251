import { randomUUID } from "node:crypto";
import { probeSpec, runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import {
  type Capability,
  messageOf,
  type NetworkRule,
  SandboxFailed,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { z } from "zod";
import { fixFor } from "./api/server.js";
import type { PodOverrides } from "./open/prepared-pod.js";

export type OpenPod = (spec: SandboxSpec, scope: Scope, options: PodOverrides) => Promise<RemoteSandbox>;

/** What a gate keeps, besides the proxy's rules. */
export const keptByGate: readonly Capability[] = [
  "network.allow-cidr",
  "network.allow-host",
  "secrets.hidden",
];

/** Two servers that say the same. */
const serverProgram = `
const http = require("node:http"), says = process.argv[1];
const listening = () => new Promise((go) => { const server = http.createServer((_, response) => response.end(says)).listen(0, () => go(server.address().port)); });
Promise.all([listening(), listening()]).then((ports) => {
  const found = Object.values(require("node:os").networkInterfaces()).flat().filter((one) => !one.internal);
  const { address } = found.find(({ family }) => family === "IPv4") ?? found[0];
  console.log(JSON.stringify({ address, ports }));
});`;
const serversSchema = z.object({ address: z.string(), ports: z.tuple([z.int(), z.int()]) });

/** Asks both servers through the sandbox's proxy, and dials the first one itself. */
const clientProgram = `
const { address, ports } = JSON.parse(process.argv[1]), proxy = new URL(process.env.HTTP_PROXY);
const host = address.includes(":") ? "[" + address + "]" : address;
const ask = (port) => new Promise((go) => {
  const asked = require("node:http").request({ host: proxy.hostname, port: proxy.port, path: "http://" + host + ":" + port + "/",
    headers: { host: host + ":" + port }, agent: false, timeout: 15000 }, async (response) => {
    let text = "";
    for await (const piece of response) text += piece;
    go(response.statusCode + " " + text.slice(0, 300));
  });
  asked.on("timeout", () => asked.destroy(new Error("no answer"))).on("error", (error) => go("0 " + error.message));
  asked.end();
});
const dial = (port) => new Promise((go) => {
  const socket = require("node:net").connect({ host: address, port });
  const end = (isOpen) => { go(isOpen); socket.destroy(); };
  socket.once("connect", () => end(true)).on("error", () => end(false)).setTimeout(2000, () => end(false));
});
(async () => console.log(JSON.stringify({ listed: await ask(ports[0]), other: await ask(ports[1]), direct: await dial(ports[0]) })))();`;
const seenSchema = z.object({ listed: z.string(), other: z.string(), direct: z.boolean() });
type Seen = z.output<typeof seenSchema>;

/**
 * Tries a gate beside a control: another pod's two servers say the same to anybody, and only the first is listed.
 *
 * @returns why it doesn't show what it should, with the fix; undefined if it does
 */
export async function whyGateFails(
  open: OpenPod,
  node: string,
  signal: AbortSignal,
): Promise<{ readonly reason: string; readonly fix: string } | undefined> {
  const opened: RemoteSandbox[] = [];
  const openNext = async (spec: SandboxSpec, options: PodOverrides) => {
    const sandbox = await open(spec, { signal, defer: () => undefined }, options);
    opened.push(sandbox);
    return sandbox;
  };
  try {
    const says = `ambit-gate-${randomUUID()}`;
    const peer = await openNext(probeSpec({}), {});
    const servers = await serversIn(peer, node, says, signal);
    const { address, ports } = servers;
    const family = address.includes(":") ? 6 : 4;
    const cidr = `${address}/${family === 4 ? 32 : 128}`;
    const rules: readonly NetworkRule[] = [{ kind: "range", cidr, family, port: ports[0] }];
    const decisions: boolean[] = [];
    const spec = probeSpec(
      { network: { mode: "allowlist", rules } },
      { onDecision: ({ allowed }) => void decisions.push(allowed) },
    );
    const sandbox = await openNext(spec, { egress: "gate" });
    const { stdout, stderr } = await runToEnd(sandbox, {
      argv: [node, "-e", clientProgram, JSON.stringify(servers)],
      env: pathOf(sandbox),
      signal,
    });
    if (stdout === "") throw new SandboxFailed(`The gate couldn't be tried: ${stderr.trim().slice(-300)}`);
    const reason = whyNotShown(seenSchema.parse(JSON.parse(stdout)), says, decisions);
    return reason === undefined ? undefined : { reason, fix: gateFix };
  } catch (error) {
    signal.throwIfAborted();
    return { reason: messageOf(error), fix: fixFor(error) };
  } finally {
    await Promise.all(opened.map((sandbox) => sandbox.close()));
  }
}

const gateFix =
  'let pods with the label ambit-role=gate reach what runs may reach, also other pods, or set sandbox-kubernetes\' egress to "bridge"';

/** Pure. */
export function whyNotShown(
  { listed, other, direct }: Seen,
  says: string,
  decisions: readonly boolean[],
): string | undefined {
  if (!listed.includes(says))
    return `a gate didn't reach the server of another pod that is listed: ${listed}`;
  if (other.includes(says)) return "a gate let a connection to an unlisted port through";
  if (direct) return "a pod with a gate reaches another pod without it";
  if (decisions.length !== 2 || !decisions.includes(true) || !decisions.includes(false))
    return `a gate reported ${decisions.length} decisions of 2`;
  return undefined;
}

const pathOf = ({ image }: RemoteSandbox): Record<string, string> =>
  image === undefined ? {} : { PATH: image.searchPath };

async function serversIn(peer: RemoteSandbox, node: string, says: string, signal: AbortSignal) {
  const server = await peer.spawn({ argv: [node, "-e", serverProgram, says], env: pathOf(peer), signal });
  const decoder = new TextDecoder();
  let said = "";
  for await (const piece of server.stdout) {
    said += decoder.decode(piece, { stream: true });
    if (said.includes("\n") || said.length > 1_000) break;
  }
  return serversSchema.parse(JSON.parse(said.split("\n")[0] ?? ""));
}
