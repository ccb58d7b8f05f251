import { availableParallelism } from "node:os";
import type { Finding } from "@ambit/core/plugin";
import type { LoopbackDaytona } from "@ambit/daytona-loopback";
import { describe, expect, it, type TestContext } from "vitest";
import type { DaytonaSandbox } from "../../src/index.js";
import { isNoticed, runSizeMutants } from "../mutation/run-mutants.ts";
import { backendFor, useLoopback } from "../support/loopback.js";

const never = new AbortController().signal;

async function findingsOf(backend: DaytonaSandbox): Promise<Record<string, Finding>> {
  return Object.fromEntries((await backend.probe(never)).map((finding) => [finding.capability, finding]));
}

const proof = (text: RegExp) => ({ proven: true, how: expect.stringMatching(text) });

function skipWithoutProcessors(context: TestContext, daytona: LoopbackDaytona): void {
  if (!daytona.limits.includes("cpu")) context.skip("host: no cgroup limits processors here");
  if (availableParallelism() < 2) context.skip("host: with one processor all sandboxes have the same share");
}

describe("a canary of an image", () => {
  // Other load on this machine must not look like a limit.
  const loopback = useLoopback({ organization: { ownProcessors: true } });

  it("proves that sizes are limits", { timeout: 180_000 }, async (context) => {
    const daytona = loopback();
    skipWithoutProcessors(context, daytona);
    const found = await findingsOf(await backendFor(daytona, { snapshot: undefined, image: "node:22" }));
    expect(found).toMatchObject({
      "resources.memory": proof(/1280 MiB of memory could be used in a large sandbox/),
      "resources.disk": proof(/1280 MiB of disk could be used in a large sandbox/),
      "resources.cpu": proof(/cores could be used in a large sandbox/),
    });
  });

  it("proves none that the platform leaves out, and no sandbox starts without it", {
    timeout: 180_000,
  }, async (context) => {
    skipWithoutProcessors(context, loopback());
    expect((await runSizeMutants()).filter((row) => !isNoticed(row) || row.start === undefined)).toEqual([]);
  });
});
