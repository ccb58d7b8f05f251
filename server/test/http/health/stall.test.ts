import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { halfOpen, statusOf } from "../../support/half-open.js";
import { serveProcess } from "../../support/served-process.js";

const use = fileURLToPath(new URL("../../support/blocking-plugin.mjs", import.meta.url));
const token = "s3cret-token-of-16";

it("is reported by the health listener while the event loop is blocked and thousands wait", {
  timeout: 60_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-blocked-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "blocked");
  const { url, healthUrl, child } = await serveProcess({
    token,
    configuration: {
      plugins: [{ use, config: { file } }, "@ambit/executor-client"],
      server: { health: { stallTimeoutMs: 4_000 } },
    },
  });
  const health = async (path: string) => {
    const response = await fetch(`${healthUrl}${path}`);
    return [response.status, await response.json()];
  };
  await expect.poll(() => health("/ready")).toEqual([200, { status: "ready", store: "none" }]);
  child.kill("SIGUSR2");
  await expect.poll(() => existsSync(file)).toBe(true);
  await halfOpen(url, 500);
  let isMainAnswered = false;
  const main = statusOf(`${url}/health`).finally(() => {
    isMainAnswered = true;
  });
  expect(await health("/health")).toMatchObject([200, { status: "ok" }]);
  await expect.poll(() => health("/health")).toMatchObject([503, { status: "stalled" }]);
  expect(await health("/health")).toEqual([
    503,
    { status: "stalled", stalledForMs: expect.any(Number), replicaId: expect.any(String) },
  ]);
  expect(await health("/ready")).toEqual([503, { status: "stalled", store: "none" }]);
  // The control: the same question, on the port that callers use.
  expect(isMainAnswered).toBe(false);
  await rm(file);
  expect(await main).toBe(200);
  await expect.poll(() => health("/health")).toMatchObject([200, { status: "ok" }]);
  await expect.poll(() => health("/ready")).toEqual([200, { status: "ready", store: "none" }]);
});
