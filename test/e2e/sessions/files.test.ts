// needs: jail
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AmbitClient, AmbitError, type RunRequest } from "@ambit/client";
import { expect, it } from "vitest";
import { allOf, emptyFolder, serve } from "../support/ambit.js";

const operatorToken = "the-operator's-token-which-is-long-enough";
const tenantToken = "ambit_of-a-tenant-that-is-long-enough";

const turn = (...script: readonly string[]): RunRequest => ({
  harness: "demo",
  sessionId: "open",
  permissions: { default: "allow" },
  sandboxPermission: { network: "off", filesystem: "workspace" },
  interactions: { waitMs: 60_000 },
  messages: [{ role: "user", content: script.join("\n") }],
});

const code = (error: unknown) => (error instanceof AmbitError ? error.code : String(error));
const status = (error: unknown) => (error instanceof AmbitError ? error.status : String(error));

it("an open session's workspace is seen between its runs and in one, by its project alone, and ends with it", async () => {
  const folder = await emptyFolder();
  const token = `sha256:${createHash("sha256").update(tenantToken).digest("hex")}`;
  const configuration = join(folder, "ambit.json");
  writeFileSync(
    configuration,
    JSON.stringify({ tokens: [{ token, project: "other" }], probes: { keepAcrossRestarts: true } }),
  );
  const server = await serve({ AMBIT_TOKEN: operatorToken }, ["--config", configuration]);
  const operator = new AmbitClient({ url: server.url, token: operatorToken, projectId: "acme" });
  const tenant = new AmbitClient({ url: server.url, token: tenantToken });
  const events = await allOf(
    operator.run(turn("write src/app.js let a = 1;", "run ln -s /etc etc && head -c 5 etc/passwd")),
  );
  // The control: the agent follows the link.
  expect(JSON.stringify(events)).toContain("root:");

  const { entries, complete } = await operator.sessionFiles("open");
  expect([entries.map(({ name, kind }) => [name, kind]), complete]).toEqual([
    [
      ["etc", "link"],
      ["src", "folder"],
    ],
    true,
  ]);
  expect((await operator.sessionFiles("open", "src")).entries).toMatchObject([{ name: "app.js", size: 10 }]);
  const file = await operator.sessionFile("open", "src/app.js");
  expect([await file.text(), file.headers.get("content-security-policy")]).toEqual(["let a = 1;", "sandbox"]);
  expect(await operator.sessionFile("open", "etc/passwd").catch(code)).toBe("not_found");
  expect(await operator.sessionFiles("open", "../..").catch(code)).toBe("request_invalid");

  expect(await tenant.sessionFiles("open").catch(code)).toBe("not_found");
  const { token: ofPage } = await operator.makeToken({ sessionId: "open", may: ["read"] });
  const page = new AmbitClient({ url: server.url, token: ofPage });
  expect(await page.sessionFiles("open").catch(status)).toBe(403);
  expect((await page.runs({})).runs).toHaveLength(1);

  const running = operator.run(turn("write src/later.js let b;", "ask go on"));
  for await (const event of running) if (event.type === "interaction_request") break;
  const during = await operator.sessionFiles("open", "src");
  expect(during.entries.map(({ name }) => name)).toEqual(["app.js", "later.js"]);
  await operator.closeSession("open");
  expect(await operator.sessionFiles("open").catch(code)).toBe("not_found");
}, 120_000);
