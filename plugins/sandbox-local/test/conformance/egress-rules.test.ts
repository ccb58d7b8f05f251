import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { EgressRules } from "@ambit/backend-kit";
import * as proxies from "@ambit/egress/proxy";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeEgressMutant, makeMutant, type Patch, removeMutants } from "./mutants/make-mutant.js";

const listener = createServer((_incoming, response) => response.end("answered"));
let folder: string;
let port: number;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ambit-egress-rules-"));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  port = (listener.address() as AddressInfo).port;
});
afterAll(() => {
  listener.closeAllConnections();
  listener.close();
  rmSync(folder, { recursive: true, force: true });
  removeMutants();
});

/** What the probe says of a proxy's rules. */
async function complaints({ openEgressProxy }: typeof proxies): Promise<readonly string[]> {
  const found = [];
  for (const isWide of [false, true]) {
    const rules = new EgressRules();
    const path = join(mkdtempSync(join(folder, "p")), "s");
    const policy = EgressRules.boundary(port, isWide);
    const proxy = await openEgressProxy({
      listen: { path },
      policy,
      lookup: rules.lookup,
      hostAddresses: () => [],
      onDecision: () => undefined,
    });
    const asked = EgressRules.hosts.map(async (host) => ((await ask(path, host)) === 200 ? [host] : []));
    const complaint = rules.complaint((await Promise.all(asked)).flat());
    if (complaint !== undefined) found.push(complaint);
    await proxy.close();
  }
  return found;
}

async function ask(socketPath: string, host: string): Promise<number | undefined> {
  const headers = { host: `${host}:${port}`, connection: "close" };
  const outgoing = request({ socketPath, path: `http://${host}:${port}/`, headers, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

const egress = (file: string, find: string, replace: string): Patch => ({
  of: "egress",
  file,
  find,
  replace,
});

const built = dirname(fileURLToPath(import.meta.resolve("@ambit/egress")));
/** Every special block, as the built module writes it. */
const blocks = [
  ...readFileSync(join(built, "decide.js"), "utf8").matchAll(/^ {4}\["([^"]+)", ".*"\],\n/gm),
].map(([line, block = ""]) => ({ line, block }));

const rules: readonly (readonly [name: string, patch: Patch, complaint: RegExp])[] = [
  [
    "names end with a listed one's letters",
    egress(
      "decide.js",
      "function matchesName(rule, name) {",
      "function matchesName(rule, name) { if (rule.subdomains) return name.endsWith(rule.name);",
    ),
    /closed\.test was reached, which isn't listed/,
  ],
  [
    "a listed name contains its subdomains",
    egress("decide.js", ": name === rule.name", ': name === rule.name || name.endsWith("." + rule.name)'),
    /a\.ok\.test was reached/,
  ],
  [
    "a listed name is the beginning of others",
    egress("decide.js", ": name === rule.name", ": name.startsWith(rule.name)"),
    /ok\.test\.other\.test was reached/,
  ],
  [
    "names are looked up before the decision",
    egress(
      "proxy/gate.js",
      "const first = decideBeforeLookup(target, this.#options.policy);\n        if (!first.allowed)",
      "await this.#resolve(target.host); const first = decideBeforeLookup(target, this.#options.policy);\n        if (!first.allowed)",
    ),
    /was looked up, though it isn't listed/,
  ],
  [
    "names are resolved again when they are dialled",
    egress(
      "proxy/gate.js",
      "return { decision, addresses };",
      'return { decision, addresses: target.kind === "address" ? addresses : await this.#resolve(target.host) };',
    ),
    /looked up 2 times/,
  ],
  [
    "only the first address is checked",
    egress("decide.js", "for (const address of addresses)", "for (const address of addresses.slice(0, 1))"),
    /b0\.closed\.test was reached/,
  ],
  [
    "only the last address is checked",
    egress("decide.js", "for (const address of addresses)", "for (const address of addresses.slice(-1))"),
    /first\.closed\.test was reached/,
  ],
  [
    "special addresses are open",
    egress("decide.js", "if (block !== undefined &&", "if (block !== undefined && false &&"),
    /b0\.closed\.test was reached/,
  ],
  [
    "a wide range opens special addresses",
    egress("decide.js", "parsedRange(rule).prefix >= block.prefix", "parsedRange(rule).prefix >= 0"),
    /b0\.closed\.test was reached/,
  ],
  [
    "what is of no block is open",
    egress("decide.js", "return isPublic", "return true || isPublic"),
    /was reached, though it resolves to 127\.0\.0\.1 and 4000::1/,
  ],
  [
    "an IPv4 address written as IPv6 is the same",
    egress("decide.js", "const address = ipaddr.parse(text);", "const address = ipaddr.process(text);"),
    /::ffff:127\.0\.0\.1/,
  ],
  [
    "a rule's port doesn't count",
    egress("decide.js", "return rule.port === undefined || rule.port === port;", "return true;"),
    /port\.test was reached/,
  ],
];

describe("the rules of the egress proxy", () => {
  it("hold", async () => {
    expect(await complaints(proxies)).toEqual([]);
    expect(blocks).toHaveLength(42);
  });

  it.each(blocks)("are seen to miss $block", async ({ line, block }) => {
    const patch = egress("decide.js", line, "");
    expect((await complaints(await mutated(block, patch))).join("\n")).toContain("was reached, though");
  });

  it.each(rules)("are seen to be weaker: %s", async (name, patch, complaint) => {
    expect((await complaints(await mutated(name, patch))).join("\n")).toMatch(complaint);
  });
});

describe("the local sandbox's probe", () => {
  it.each([
    ["link-local addresses", egress("decide.js", '    ["169.254.0.0/16", "link-local"],\n', "")],
    [rules[0]?.[0] ?? "", rules[0]?.[1] ?? egress("", "", "")],
  ])("proves no list without the rule: %s", { timeout: 60_000 }, async (name, patch) => {
    const { backend } = await makeMutant(folderOf(`probed ${name}`), [patch], async () => ["127.0.0.1"]);
    const findings = await backend.probe(AbortSignal.timeout(60_000), ["network.allow-host"]);
    const finding = findings.find(({ capability }) => capability === "network.allow-host");
    expect(finding).toMatchObject({ proven: false });
  });
});

async function mutated(name: string, patch: Patch): Promise<typeof proxies> {
  return await import(new URL("dist/proxy/index.js", makeEgressMutant(folderOf(name), patch)).href);
}

const folderOf = (name: string) => `rules-${name.replaceAll(/[^\w.]+/g, "-")}`;
