import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { openConnectProxy } from "@ambit/fakes/connect-proxy";
import { listening } from "@ambit/fakes/listening";
import { startModelServer } from "@ambit/model-server";
import { expect, it, onTestFinished } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { ambit, bodyOf, demo, emptyFolder, serve } from "../support/ambit.js";
import { callbackServer, callbackTool } from "../support/callback-server.js";

/** Hosts that only the company's proxy resolves and reaches. */
async function company(configuration: object = {}, places: Readonly<Record<string, string>> = {}) {
  const requests: string[] = [];
  const site = createServer(({ url = "", headers }, response) => {
    requests.push(`${headers.host}${url}`);
    response.end("the site");
  });
  const port = await listening(site, onTestFinished);
  const proxy = await openConnectProxy(onTestFinished, {
    credentials: "ambit:s3cret-of-the-company",
    leadsTo: (place) => ({ "site.example:80": `127.0.0.1:${port}`, ...places })[place],
  });
  const folder = await emptyFolder();
  const config = join(folder, "ambit.config.json");
  const egress = { proxy: { url: proxy.url, resolve: "proxy", ...configuration } };
  writeFileSync(config, JSON.stringify({ egress }));
  const variables = {
    AMBIT_CONFIG: config,
    AMBIT_EGRESS_PROXY_CREDENTIALS: "ambit:s3cret-of-the-company",
    // Of this host's own programs: they have no effect on Ambit.
    NODE_USE_ENV_PROXY: "1",
    HTTP_PROXY: "http://127.0.0.1:9",
    HTTPS_PROXY: "http://127.0.0.1:9",
  };
  return { proxy, requests, variables };
}

const listed = (...allowlist: readonly string[]) => ({
  sandboxPermission: { network: { mode: "allowlist", allowlist } },
});

it("lets a sandbox reach a listed host through the company's proxy, and no other", {
  timeout: 120_000,
}, async () => {
  skipWithout("jail");
  const { proxy, requests, variables } = await company();
  const { post } = await serve(variables, []);
  const run = {
    ...demo(
      "run curl -sS http://site.example/a",
      "run curl -sS -o /dev/null -w '%{http_code}' http://other.example/",
      "run curl -sS -o /dev/null -w '%{http_code}' http://gone.example/",
    ),
    ...listed("site.example", "gone.example"),
  };
  const result = await bodyOf(await post("/run", run));
  expect(result).toMatchObject({
    ok: true,
    receipt: {
      decisions: { allowed: 2, refused: 1, failed: 1 },
      egress: { proxies: [new URL(proxy.url).host], resolve: "proxy" },
    },
  });
  expect(JSON.stringify(result)).toContain("the site");
  expect(requests).toEqual(["site.example/a"]);
  // The unlisted one is refused before the proxy sees it.
  expect(proxy.asked).toEqual(["site.example:80", "gone.example:80"]);
  expect(result).toMatchObject({
    events: expect.arrayContaining([
      expect.objectContaining({
        type: "boundary_decision",
        target: "gone.example:80",
        allowed: true,
        failure: expect.stringContaining("answered 403"),
      }),
      expect.objectContaining({ type: "boundary_decision", target: "other.example:80", allowed: false }),
    ]),
  });
  expect(JSON.stringify(result)).not.toContain("s3cret-of-the-company");
});

it("carries the model's requests and a tool's calls through it", { timeout: 120_000 }, async () => {
  await using model = await startModelServer({ expectedKey: "test-key-123" });
  const platform = await callbackServer(() => ({ found: 42 }));
  const { proxy, variables } = await company(
    {},
    {
      "model.example:80": new URL(model.url).host,
      "platform.example:80": new URL(platform.endpoint).host,
    },
  );
  const { post } = await serve(variables, []);
  const endpoint = new URL(platform.endpoint);
  const result = await bodyOf(
    await post("/run", {
      harness: "gemini",
      messages: [{ role: "user", content: '[[call lookup {"key":"alpha"}]]' }],
      customTools: [callbackTool("lookup", { description: "Looks a key up." })],
      toolCallback: { endpoint: `http://platform.example${endpoint.pathname}` },
      modelConnection: {
        provider: "google",
        endpoint: { baseUrl: `http://model.example${new URL(model.url).pathname}` },
        credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "test-key-123" }],
      },
    }),
  );
  expect(result).toMatchObject({ ok: true });
  expect(platform.calls).toHaveLength(1);
  expect(new Set(proxy.asked)).toEqual(new Set(["model.example:80", "platform.example:80"]));
});

it("tells in the doctor whether the proxy works, without asking it for another host", {
  timeout: 120_000,
}, async () => {
  const { proxy, variables } = await company();
  const works = await ambit(["doctor"], { env: variables });
  expect(works.stdout).toContain(`The way out, ${new URL(proxy.url).host}, works`);
  expect(works.stdout).toContain("it resolves names");
  expect(proxy.asked).toEqual([new URL(proxy.url).host]);
  // The probes on loopback aren't captured by the variables.
  expect(works.stdout).not.toContain("fetch failed");
  expect(works.stdout).toMatch(/✔ executor callback +network\.allow-host/);
  const env = { ...variables, AMBIT_EGRESS_PROXY_CREDENTIALS: "ambit:wrong-password" };
  const refused = await ambit(["doctor"], { env });
  expect(refused.stdout).toContain("doesn't work: it answered 407");
  expect(refused.stdout + refused.stderr).not.toContain("wrong-password");
});
