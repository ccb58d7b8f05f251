/**
 * A process that asks servers for their health, each over a new connection, as a load balancer does: `prober.js URL…`. It
 * asks at fixed times, whether or not the earlier requests were answered, so that a stall counts for all that fall into
 * it. It sends what it measured, each time it is asked, and begins anew.
 */
import { get } from "node:http";

const everyMs = 20;
/** Milliseconds after which a request counts as failed. */
const patienceMs = 20_000;

const urls = process.argv.slice(2);
let measured = urls.map((): Probed => ({ ms: [], failed: 0 }));

/** Of one server. */
export interface Probed {
  readonly ms: number[];
  failed: number;
}

function probe(url: string, into: Probed): void {
  const begun = performance.now();
  let isOver = false;
  const over = (isAnswered: boolean) => {
    if (isOver) return;
    isOver = true;
    if (isAnswered) into.ms.push(performance.now() - begun);
    else into.failed += 1;
  };
  const sent = get(new URL("/health", url), { agent: false, timeout: patienceMs }, (response) => {
    response.resume().once("end", () => over(response.statusCode === 200));
    response.once("close", () => over(false));
  });
  sent.once("timeout", () => sent.destroy());
  sent.once("error", () => over(false));
}

setInterval(() => {
  for (const [index, url] of urls.entries()) {
    const into = measured[index];
    if (into !== undefined) probe(url, into);
  }
}, everyMs);

process.on("message", () => {
  process.send?.(measured);
  measured = urls.map(() => ({ ms: [], failed: 0 }));
});
process.once("disconnect", () => process.exit());
