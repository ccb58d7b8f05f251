// needs: jail
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ConnectionDecision, type NetworkBoundary, parseNetworkRule } from "@ambit/core/plugin";
import { expect, onTestFinished, test } from "vitest";
import { directHosts, limitsOf, loopbackForwards } from "../../../src/claims.js";
import { everythingOn, openConfined, run } from "../../support/specs.js";

function listing(...entries: string[]): NetworkBoundary {
  const rules = entries.map((entry) => {
    const parsed = parseNetworkRule(entry);
    if (!("rule" in parsed)) throw new Error(`${entry} ${parsed.problem}`);
    return parsed.rule;
  });
  return { mode: "allowlist", rules };
}

async function startServer(address: string, text: string): Promise<number> {
  const server = createServer((request, response) => {
    request.resume().once("end", () => response.end(`${text} ${request.method} ${request.url}`));
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, address);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

test.each([
  [["127.0.0.1:8768", "127.0.0.1:8768"], ["127.0.0.1:8768"]],
  [["127.0.0.1:8768"], ["127.0.0.1:8768"]],
  [
    ["127.0.0.2/32:8768", "[::1]:4000"],
    ["127.0.0.2:8768", "::1:4000"],
  ],
  [["127.0.0.1", "127.0.0.0/8:8768", "10.0.0.1:8768", "localhost:8768", "a.test:8768"], []],
  [["127.0.0.1:80", "127.0.0.1:3128"], []],
])("for %j a jail forwards %j", (entries, forwards) => {
  const found = loopbackForwards(listing(...entries)).map(({ address, port }) => `${address}:${port}`);
  expect(found).toEqual(forwards);
});

test.each([
  [["127.0.0.1:8768", "a.test"], true],
  [["0.0.0.0/0"], true],
  [["127.0.0.1"], false],
  [["127.0.0.0/8"], false],
  [["127.0.0.1:80"], false],
])("with %j programs reach 127.0.0.1 without the proxy: %s", (entries, direct) => {
  const hosts = directHosts(listing(...entries));
  expect(hosts.includes("127.0.0.1")).toBe(direct);
  expect(hosts).toEqual(expect.arrayContaining(["localhost", "sandbox", "::1"]));
});

test.each([
  [["127.0.0.1:3128"], /the address of the sandbox's own channel.*another port/],
  [["localhost:11434"], /no listed range contains it.*list "127.0.0.1:11434" instead/],
  [Array.from({ length: 17 }, (_, index) => `127.0.0.1:${8000 + index}`), /17 ports.*16 at most/],
])("%j can't be enforced, and the gap names a fix", (entries, words) => {
  const gaps = limitsOf({ ...everythingOn, network: listing(...entries) });
  expect(gaps.map(({ reason, fix }) => `${reason}: ${fix}`)).toEqual([expect.stringMatching(words)]);
});

test("a listed service on the host's loopback can be reached inside at its own address", async () => {
  const [listed, other] = await Promise.all([
    startServer("127.0.0.1", "host"),
    startServer("127.0.0.1", "other"),
  ]);
  const decisions: ConnectionDecision[] = [];
  const sandbox = await openConfined(
    { network: listing(`127.0.0.1:${listed}`, "a.test") },
    { onDecision: (decision) => decisions.push(decision) },
  );
  const url = `http://127.0.0.1:${listed}`;
  // With the variables, past the proxy, through it, and by one of the jail's own names.
  const curl = (...args: string[]) => run(sandbox, ["curl", "-sS", ...args]);
  expect((await curl(`${url}/a`)).stdout).toBe("host GET /a");
  expect((await curl("--noproxy", "*", "-d", "x=y", `${url}/b`)).stdout).toBe("host POST /b");
  expect((await curl("--noproxy", "", "-x", "http://127.0.0.1:3128", `${url}/c`)).stdout).toBe("host GET /c");
  expect((await curl(`http://localhost:${listed}/d`)).stdout).toBe("host GET /d");
  const script = `fetch("${url}/e").then((answer) => answer.text()).then(console.log)`;
  expect((await run(sandbox, ["node", "-e", script])).stdout).toBe("host GET /e\n");
  expect(new Set(decisions.map(({ target, allowed }) => `${target} ${allowed}`))).toEqual(
    new Set([`127.0.0.1:${listed} true`]),
  );
  // The next port isn't listed and can't be reached.
  expect((await curl(`http://127.0.0.1:${other}/`)).stderr).toMatch(/Failed to connect|refused/);
});

test("an IPv6 loopback address, and one other than 127.0.0.1, can be reached inside too", async (context) => {
  const other = await startServer("127.0.0.2", "other");
  const six = await startServer("::1", "six").catch((error: Error) => error.message);
  if (typeof six === "string") return context.skip(`host: no IPv6 loopback (${six})`);
  const sandbox = await openConfined({ network: listing(`127.0.0.2:${other}`, `[::1]:${six}`) });
  const urls = [`http://127.0.0.2:${other}/`, `http://[::1]:${six}/`];
  expect((await run(sandbox, ["curl", "-sSg", "--noproxy", "*", ...urls])).stdout).toBe(
    "other GET /six GET /",
  );
});

test("an address that is listed with all ports goes through the proxy, and the rest of loopback stays the jail's own", async () => {
  const port = await startServer("127.0.0.1", "host");
  const sandbox = await openConfined({ network: listing("127.0.0.1") });
  expect((await run(sandbox, ["curl", "-sS", `http://127.0.0.1:${port}/a`])).stdout).toBe("host GET /a");
  const exposure = await sandbox.expose(() => new Response("exposed"));
  const script = `fetch("${exposure.url}", { headers: { authorization: "Bearer ${exposure.token}" } })
    .then((answer) => answer.text()).then(console.log)`;
  expect((await run(sandbox, ["node", "-e", script])).stdout).toBe("exposed\n");
});

test("a jail's own servers can be reached at its name and at 127.0.1.1, without the proxy", async () => {
  const sandbox = await openConfined();
  const script = `
    const { hostname } = require("node:os");
    const curl = require("node:util").promisify(require("node:child_process").execFile);
    const server = require("node:http").createServer((request, answer) => answer.end("mine " + request.headers.host));
    server.listen(8080, "0.0.0.0", async () => {
      for (const host of [hostname(), "127.0.1.1", "127.0.0.1", "localhost"]) {
        const url = "http://" + host + ":8080/";
        console.log(await fetch(url).then((got) => got.text(), (error) => String(error.cause)));
        console.log((await curl("curl", ["-sS", url])).stdout);
      }
      process.exit();
    });`;
  const hosts = ["sandbox", "127.0.1.1", "127.0.0.1", "localhost"];
  expect((await run(sandbox, ["node", "-e", script])).stdout.trim().split("\n")).toEqual(
    hosts.flatMap((host) => [`mine ${host}:8080`, `mine ${host}:8080`]),
  );
});
