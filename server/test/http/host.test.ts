import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { newToken } from "../../src/tenants/caller.js";
import { keepVerification, keptVerifications } from "../../src/verifications.js";
import { version } from "../../src/version.js";
import { saying } from "../support/scripted-agent.js";
import { serveScript } from "../support/server.js";

const acme = newToken();
const operator = "the-operator's-token-which-is-long-enough";

it("says what is required of this host, and what agents it has, to the operator alone", async () => {
  const tokens = [{ token: acme.hash, project: "acme" }];
  const configuration = { tokens, require: { network: "off" as const } };
  const { url } = await serveScript(saying("x"), { token: operator, configuration });
  const get = (token: string) => fetch(`${url}/host`, { headers: { authorization: `Bearer ${token}` } });
  const response = await get(operator);
  expect([response.status, await response.json()]).toMatchObject([
    200,
    {
      version: version(),
      node: process.version,
      agents: [{ harness: "scripted", title: "scripted", comesAlong: true, installs: [] }],
      rules: [{ name: "require", requires: "network=off", metBy: [], gaps: expect.any(Array) }],
      verifications: expect.any(Array),
    },
  ]);
  expect((await get(acme.token)).status).toBe(403);
});

it("keeps the last verification of each capability", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-verified-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const row = (verdict: string) => ({ verdict });
  const at = (hour: number) => `2026-11-29T0${hour}:00:00.000Z`;
  const proven = {
    capability: "network.deny",
    assurance: "proven",
    reason: "tried",
    attacks: [row("proven"), row("proven"), row("unproven")],
  };
  const refused = {
    ...proven,
    capability: "resources.disk",
    assurance: "refused",
    fix: "mount one",
    attacks: [],
  };
  await keepVerification({ backend: "a/b", at: at(1), capabilities: [proven, refused] }, folder);
  await keepVerification(
    { backend: "a/b", at: at(2), capabilities: [{ ...proven, assurance: "broken" }] },
    folder,
  );
  await writeFile(join(folder, "other.json"), "{}");
  expect(await keptVerifications(folder)).toEqual([
    {
      sandbox: "a/b",
      capabilities: [
        {
          capability: "resources.disk",
          assurance: "refused",
          attacks: 0,
          reason: "tried",
          fix: "mount one",
          at: at(1),
          version: version(),
        },
        {
          capability: "network.deny",
          assurance: "broken",
          attacks: 2,
          reason: "tried",
          at: at(2),
          version: version(),
        },
      ],
    },
  ]);
  expect(await keptVerifications(join(folder, "none"))).toEqual([]);
});
