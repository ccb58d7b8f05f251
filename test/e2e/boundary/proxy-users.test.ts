// needs: jail
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import type { SecureContext } from "node:tls";
import { makeAuthority } from "@ambit/egress/credentials";
import { openConnectProxy } from "@ambit/fakes/connect-proxy";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { demo, emptyFolder, type Server, serve } from "../support/ambit.js";

const password = "s3cret-of-the-company";

/** A server whose only way out is a company's proxy, and one TLS host behind it with every name below `example`. */
async function behindProxy(refuses: boolean) {
  const folder = await emptyFolder();
  const authority = await makeAuthority();
  const requests: string[] = [];
  const SNICallback = (name: string, done: (error: Error | null, context?: SecureContext) => void) =>
    void authority.contextFor(name).then((context) => done(null, context), done);
  const site = createServer({ SNICallback }, ({ method, url = "", headers }, response) => {
    requests.push(`${method} ${headers.host}${url}`);
    response.writeHead(404).end();
  });
  const port = await listening(site, onTestFinished);
  const proxy = await openConnectProxy(onTestFinished, {
    credentials: `ambit:${password}`,
    leadsTo: () => (refuses ? undefined : `127.0.0.1:${port}`),
  });
  const [config, trusted] = [join(folder, "ambit.config.json"), join(folder, "authority.pem")];
  writeFileSync(trusted, authority.certificate);
  writeFileSync(
    config,
    JSON.stringify({
      extends: "defaults",
      plugins: [{ use: "@ambit/sandbox-local", config: { trustedAuthorities: [trusted] } }],
      egress: { proxy: { url: proxy.url, resolve: "proxy" } },
      webhooks: { attempts: 1 },
      probes: { keepAcrossRestarts: true },
    }),
  );
  const server = await serve(
    {
      AMBIT_CONFIG: config,
      AMBIT_EGRESS_PROXY_CREDENTIALS: `ambit:${password}`,
      AMBIT_WEBHOOK_SECRET: `whsec_${Buffer.from("a secret of the operator").toString("base64")}`,
      NODE_EXTRA_CA_CERTS: trusted,
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://telemetry.example",
      OTEL_BSP_SCHEDULE_DELAY: "50",
    },
    [],
  );
  return { server, proxy, requests };
}

interface User {
  readonly host: string;
  /** What of a request makes Ambit connect there. */
  readonly body: object;
  /** What the run or the server's log says where the proxy refuses that. */
  readonly refused: RegExp;
}

const listed = (...allowlist: readonly string[]) => ({ network: { mode: "allowlist", allowlist } });
const users: readonly User[] = [
  { host: "telemetry.example", body: {}, refused: /answered 403[^"]*","msg":"telemetry can't be exported/ },
  {
    host: "hook.example",
    body: { webhook: { url: "https://hook.example/hook" } },
    refused: /"host":"hook\.example".*PROXY_403.*a webhook could not be delivered/,
  },
  {
    host: "tools.example",
    body: { mcpServers: [{ name: "tools", connection: { type: "http", url: "https://tools.example/mcp" } }] },
    refused: /MCP server 'tools' could not be reached.*PROXY_403/,
  },
  {
    host: "archive.example",
    body: {
      workspace: {
        sources: [
          { type: "archive", url: "https://archive.example/a.tgz", sha256: "0".repeat(64), format: "tar.gz" },
        ],
      },
    },
    refused: /workspace\.sources\[0\] couldn't be downloaded.*PROXY_403/,
  },
  {
    host: "git.example",
    body: { workspace: { sources: [{ type: "git", url: "https://git.example/a.git" }] } },
    refused: /workspace\.sources\[0\] couldn't be reached.*CONNECT tunnel failed/,
  },
  {
    host: "values.example",
    body: {
      ...demo('run curl -sS -H "Authorization: Bearer $KEY" https://api.example/', "say done"),
      sandboxPermission: listed("api.example"),
      credentials: [
        {
          name: "KEY",
          value: "kept-outside-0123456789",
          hosts: ["api.example"],
          as: "bearer",
          refresh: { url: "https://values.example/values", authorization: "Bearer of-the-platform" },
        },
      ],
    },
    refused: /PROXY_403.*a credential could not be refreshed/,
  },
];

async function tellOf(server: Server, { body }: User): Promise<string> {
  const said = await (await server.post("/run", { ...demo("say done"), ...body })).text();
  return `${said}\n${server.log()}`;
}

describe("the company's proxy is the way out of", { timeout: 120_000 }, () => {
  it("what a run makes Ambit itself connect to", async () => {
    const { server, proxy, requests } = await behindProxy(false);
    for (const user of users) {
      const told = await tellOf(server, user);
      await expect
        .poll(() => requests.join("\n"), { timeout: 30_000, message: told })
        .toContain(` ${user.host}`);
      expect(proxy.asked).toContain(`${user.host}:443`);
      expect(told).not.toContain(password);
    }
    expect(proxy.others).toEqual([]);
  });

  it("nothing that it refuses, and each refusal is told", async () => {
    const { server, proxy, requests } = await behindProxy(true);
    for (const user of users) {
      const before = server.log().length;
      const told = await tellOf(server, user);
      const saying = () => `${told}${server.log().slice(before)}`;
      await expect.poll(() => proxy.asked, { timeout: 30_000 }).toContain(`${user.host}:443`);
      await expect.poll(saying, { timeout: 30_000, message: user.host }).toMatch(user.refused);
      expect(saying()).not.toContain(password);
    }
    expect(requests).toEqual([]);
  });
});
