import type { Process, Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import type { Attempts, Reached } from "../inside/attempts.js";
import { nodeWords, searchPathOf, tryInside } from "../inside/look.js";
import type { StandardBench, Targets } from "./bench.js";
import type { ProbeTarget } from "./standard-probe.js";

/** Servers on this host, by each of its addresses and by the sandbox's router; then one in another sandbox. */
export async function findTargets(bench: StandardBench): Promise<Targets> {
  const { addresses, otherPort: port, secret } = bench.decoys;
  const open = await bench.unlimited();
  const known = addresses.map((host) => ({ host, port }));
  const isThisHosts = bench.probe.reachedAt !== undefined;
  const {
    links = null,
    router,
    ...dialled
  } = await tryInside(open, bench, {
    links: { try: "links" },
    ...(isThisHosts ? {} : { router: { try: "router" } }),
    ...dialsOf(known, secret),
  });
  const atRouter = router && !addresses.includes(router) ? [{ host: router, port }] : [];
  const seen = { ...dialled, ...(atRouter.length > 0 ? await dial(bench, open, atRouter) : {}) };
  const onHost = [...known, ...atRouter];
  const found = firstOf(onHost, seen);
  const reached = found && { ...found, what: "a server of this host" };
  // A policy may close one and leave the other open.
  const needsPeer = links !== null && (reached === undefined || bench.probe.beyond !== undefined);
  if (!needsPeer) return { targets: onHost, reached, links };
  const inPeer = await startPeer(bench);
  const near = firstOf(inPeer, await dial(bench, open, inPeer));
  const other = near && { ...near, what: "a server in another sandbox" };
  return { targets: [...onHost, ...inPeer], reached: reached ?? other, links };
}

const dial = (bench: StandardBench, from: Sandbox, targets: readonly ProbeTarget[]) =>
  tryInside(from, bench, dialsOf(targets, bench.decoys.secret));

const dialsOf = (targets: readonly ProbeTarget[], says: string): Attempts =>
  Object.fromEntries(
    targets.map(({ host, port }) => [`${host} ${port}`, { try: "connect", host, port, says }]),
  );

const firstOf = (targets: readonly ProbeTarget[], seen: Reached) =>
  targets.find(({ host, port }) => (seen[`${host} ${port}`] ?? null) !== null);

const serverProgram = `
const server = require("node:http").createServer((_, response) => response.end(process.env.SAYS));
server.listen(0, () => {
  const found = Object.values(require("node:os").networkInterfaces()).flat().filter((one) => !one.internal);
  console.log(JSON.stringify(found.map(({ address: host }) => ({ host, port: server.address().port }))));
});`;

const targetsSchema = z.array(z.object({ host: z.string(), port: z.int() }));

/** Starts a server in another sandbox without limits, which ends with the probe. @returns its addresses. */
async function startPeer(bench: StandardBench): Promise<readonly ProbeTarget[]> {
  const { probe, decoys, signal } = bench;
  const peer = await bench.open({});
  const argv = [...nodeWords(probe.node), "-e", serverProgram] as const;
  const env = { PATH: searchPathOf(peer), SAYS: decoys.secret };
  const server = await peer.spawn({ argv, env, signal });
  return await addressesSaid(server);
}

async function addressesSaid(server: Process): Promise<readonly ProbeTarget[]> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = server.stdout.getReader();
  while (!text.includes("\n") && text.length < 10_000) {
    const { done, value } = await reader.read();
    if (done) return [];
    text += decoder.decode(value, { stream: true });
  }
  reader.releaseLock();
  return targetsSchema.parse(JSON.parse(text.split("\n")[0] ?? "[]"));
}
