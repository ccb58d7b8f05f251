// needs: jail
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { ConnectionDecision, NetworkBoundary, SandboxFailed } from "@ambit/core/plugin";
import { makeCertificate } from "@ambit/fakes/certificate";
import { expect, onTestFinished, test } from "vitest";
import { finish, openConfined, path, run, shell } from "../../support/specs.js";

const loopback = { kind: "range", cidr: "127.0.0.1/32", family: 4 } as const;
const listed = { kind: "host", name: "ok.test", subdomains: false } as const;
const allowlist: NetworkBoundary = { mode: "allowlist", rules: [listed, loopback] };
const lookup = async () => ["127.0.0.1"];

async function startServer(): Promise<number> {
  const server: Server = createServer((request, response) => response.end(`host ${request.headers.host}`));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

test("curl reaches a listed host with its variables, reports a refusal, and reaches nothing without the proxy", async () => {
  const port = await startServer();
  const decisions: ConnectionDecision[] = [];
  const sandbox = await openConfined(
    { network: allowlist },
    { lookup, onDecision: (decision) => decisions.push(decision) },
  );
  const curl = (...args: string[]) => run(sandbox, ["curl", "-sS", ...args]);
  expect((await curl(`http://ok.test:${port}/`)).stdout).toBe(`host ok.test:${port}`);
  const refused = await curl("-w", " %{http_code}", `http://bad.test:${port}/`);
  expect(refused.stdout).toMatch(/boundary/);
  expect(refused.stdout).toMatch(/ 403$/);
  const around = await curl("--noproxy", "*", `http://127.0.0.1:${port}/`);
  expect(around.stderr).toMatch(/Failed to connect|refused/);
  expect(decisions).toEqual([
    { target: `ok.test:${port}`, allowed: true, reason: expect.any(String) },
    { target: `bad.test:${port}`, allowed: false, reason: expect.any(String) },
  ]);
});

test("a proxy that can't record fails the sandbox and allows nothing", async () => {
  const port = await startServer();
  for (const records of [true, false]) {
    const failures: SandboxFailed[] = [];
    const onDecision = () => {
      if (!records) throw new Error("the record is full");
    };
    const onFailure = (failure: SandboxFailed) => failures.push(failure);
    const sandbox = await openConfined({ network: allowlist }, { lookup, onDecision, onFailure });
    const { stdout } = await run(sandbox, ["curl", "-sS", `http://ok.test:${port}/`]);
    expect(stdout).toBe(records ? `host ok.test:${port}` : "");
    expect(failures.map(({ code, message }) => `${code}: ${message}`)).toEqual(
      records ? [] : ["sandbox_failed: The boundary's proxy failed: the run has no network."],
    );
  }
});

test("Node's fetch and http reach a listed host, and report a refusal", async () => {
  const port = await startServer();
  const sandbox = await openConfined({ network: allowlist }, { lookup });
  const script = `
    const http = require("node:http");
    const get = (url) => new Promise((done) => http.get(url, async (response) => {
      let text = ""; for await (const chunk of response) text += chunk; done(text);
    }).on("error", (error) => done("failed: " + error.message)));
    const causeOf = (error) => "failed: " + (error.cause?.message ?? error.message);
    (async () => {
      const fetched = [];
      for (const name of ["ok", "bad"]) {
        fetched.push(await fetch("http://" + name + ".test:${port}/").then((response) => response.text(), causeOf));
        fetched.push(await get("http://" + name + ".test:${port}/"));
      }
      console.log(JSON.stringify(fetched));
    })();`;
  const { stdout } = await run(sandbox, ["node", "-e", script]);
  const [fetched, got, unfetched, ungot] = JSON.parse(stdout);
  expect([fetched, got]).toEqual([`host ok.test:${port}`, `host ok.test:${port}`]);
  for (const words of [unfetched, ungot]) expect(words).toMatch(/^failed: .*403[\s\S]*boundary/);
});

test("Node's fetch and https reach a listed host over TLS, and check its certificate themselves", async () => {
  const { key, cert } = makeCertificate("ok.test");
  const server = createSecureServer({ key, cert }, (_request, response) => response.end("secure"));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sandbox = await openConfined({ network: allowlist }, { lookup });
  await sandbox.writeFiles([{ path: "/workspace/ca.pem", content: cert }]);
  const script = `
    const https = require("node:https");
    const get = (url) => new Promise((done) => https.get(url, async (response) => {
      let text = ""; for await (const chunk of response) text += chunk; done(text);
    }).on("error", (error) => done("failed: " + error.message)));
    const causeOf = (error) => "failed: " + (error.cause?.message ?? error.message);
    (async () => {
      const found = [];
      for (const name of ["ok", "bad"]) {
        found.push(await fetch("https://" + name + ".test:${port}/").then((response) => response.text(), causeOf));
        found.push(await get("https://" + name + ".test:${port}/"));
      }
      console.log(JSON.stringify(found));
    })();`;
  const ask = async (env: Record<string, string>) =>
    JSON.parse((await run(sandbox, ["node", "-e", script], { env: { PATH: path, ...env } })).stdout);
  const [fetched, got, unfetched, ungot] = await ask({ NODE_EXTRA_CA_CERTS: "/workspace/ca.pem" });
  expect([fetched, got]).toEqual(["secure", "secure"]);
  for (const words of [unfetched, ungot]) expect(words).toMatch(/^failed: .*403/);
  const [distrusted, distrustedToo] = await ask({});
  for (const words of [distrusted, distrustedToo]) expect(words).toMatch(/self-signed|certificate/);
});

test("an exposure responds inside only to its token, also if it was exposed after the start", async () => {
  const sandbox = await openConfined();
  const early = await sandbox.expose(() => new Response("early"));
  const started = await sandbox.spawn({
    argv: shell('read token; curl -sS -H "authorization: Bearer $token" $URL/x'),
    env: { PATH: path, URL: early.url },
  });
  const late = await sandbox.expose(async (request) => new Response(`late ${new URL(request.url).pathname}`));
  const writer = started.stdin.getWriter();
  await writer.write(new TextEncoder().encode(`${late.token}\n`));
  expect((await finish(started)).stdout).toBe("late /x");

  const ask = (token: string) =>
    run(sandbox, ["curl", "-sS", "-H", `authorization: Bearer ${token}`, early.url]);
  expect((await ask(early.token)).stdout).toBe("early");
  expect((await ask("guessed")).stdout).toContain("Unauthorized");
  await early.close();
  expect((await ask(early.token)).stdout).toContain("Unauthorized");
  expect((await ask(late.token)).stdout).toBe("late /");
});

test("each jail has a separate loopback: its servers can't be reached from other jails", async () => {
  const sandbox = await openConfined();
  const serve = shell(
    "socat TCP4-LISTEN:8080,bind=127.0.0.1,fork SYSTEM:'echo mine' & sleep 0.3; socat -u TCP4:127.0.0.1:8080 -; read _",
  );
  const started = await sandbox.spawn({ argv: serve, env: { PATH: path } });
  const { value } = await started.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("mine\n");
  const other = await run(sandbox, ["socat", "-u", "TCP4:127.0.0.1:8080", "-"]);
  expect(other.stderr).toContain("Connection refused");
  await started.kill();
});
