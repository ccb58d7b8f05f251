/**
 * A process that asks servers how they are: `prober.js PROBES`, where PROBES is JSON. It asks at fixed times, whether or not the
 * earlier requests were answered, so that a stall counts for all that fall into it. It sends what it measured, each time it
 * is asked, and begins anew.
 */
import { Agent, get } from "node:http";

/** A question that is asked again and again. */
export interface Probe {
  readonly url: string;
  /** Sent with the request. Absent: none is. */
  readonly token?: string;
  /** Whether over connections that stay open, as callers have them. Else each time over a new one, as a load balancer does. */
  readonly isKept: boolean;
}

/** Of one probe. */
export interface Probed {
  readonly ms: number[];
  failed: number;
}

const everyMs = 20;
/** Milliseconds after which a request counts as failed. */
const patienceMs = 20_000;
/** Connections of a probe that keeps them. */
const keptConnections = 8;

const given: readonly Probe[] = JSON.parse(process.argv[2] ?? "[]");
const probes = given.map((probe) => ({
  ...probe,
  agent: probe.isKept
    ? new Agent({ keepAlive: true, maxSockets: keptConnections, scheduling: "fifo" as const })
    : (false as const),
}));
let measured = probes.map((): Probed => ({ ms: [], failed: 0 }));

function ask({ url, token, agent }: (typeof probes)[number], into: Probed): void {
  const begun = performance.now();
  let isOver = false;
  const over = (isAnswered: boolean) => {
    if (isOver) return;
    isOver = true;
    if (isAnswered) into.ms.push(performance.now() - begun);
    else into.failed += 1;
  };
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const sent = get(url, { agent, headers, timeout: patienceMs }, (response) => {
    response.resume().once("end", () => over(response.statusCode === 200));
    response.once("close", () => over(false));
  });
  sent.once("timeout", () => sent.destroy());
  sent.once("error", () => over(false));
}

setInterval(() => {
  for (const [index, probe] of probes.entries()) {
    const into = measured[index];
    if (into !== undefined) ask(probe, into);
  }
}, everyMs);

process.on("message", () => {
  process.send?.(measured);
  measured = probes.map(() => ({ ms: [], failed: 0 }));
});
process.once("disconnect", () => process.exit());
