import { availableParallelism } from "node:os";
import type { Finding } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import type { DaytonaSandbox } from "../../src/index.js";
import { backendFor, useLoopback } from "../support/loopback.js";

const never = new AbortController().signal;

async function findingsOf(backend: DaytonaSandbox): Promise<Record<string, Finding>> {
  return Object.fromEntries((await backend.probe(never)).map((finding) => [finding.capability, finding]));
}

const proof = (text: RegExp) => ({ proven: true, how: expect.stringMatching(text) });

describe("a canary of an image", () => {
  const loopback = useLoopback();

  it("proves that sizes are limits", { timeout: 180_000 }, async (context) => {
    const daytona = loopback();
    if (!daytona.limits.includes("cpu")) context.skip("host: no cgroup limits processors here");
    if (availableParallelism() < 2)
      context.skip("host: with one processor all sandboxes have the same share");
    let cpu: Finding | undefined;
    for (let round = 0; round < 3 && cpu?.proven !== true; round += 1) {
      const found = await findingsOf(await backendFor(daytona, { snapshot: undefined, image: "node:22" }));
      expect(found["resources.memory"]).toMatchObject(
        proof(/1280 MiB of memory could be used in a large sandbox/),
      );
      expect(found["resources.disk"]).toMatchObject(
        proof(/1280 MiB of disk could be used in a large sandbox/),
      );
      cpu = found["resources.cpu"];
    }
    // Other load keeps this machine busy: no lack of the host, so it fails where skips must name one.
    if (cpu?.proven === false && /didn't give more/.test(cpu.reason)) context.skip(`busy: ${cpu.reason}`);
    expect(cpu).toMatchObject(proof(/cores could be used in a large sandbox/));
  });
});
