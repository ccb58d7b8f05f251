import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { labelsOf, ownershipOf } from "@ambit/backend-kit";
import type { Boundary } from "@ambit/core/plugin";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { Account } from "../src/account.js";
import { differences } from "../src/open/read-back.js";
import { startMachine } from "../src/open/start-machine.js";
import type { MachineView, SandboxOrder } from "../src/platform/service.js";
import { closed, listing, unlimited } from "./support/boundaries.js";
import { configFor, logged } from "./support/loopback.js";

/** What the official SDK posts for a boundary; nothing is made. */
async function posted(boundary: Boundary, overrides: object = {}): Promise<Record<string, unknown>> {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    if (request.method === "POST") bodies.push(body);
    response.writeHead(request.method === "POST" ? 422 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify({ message: "recorded" }));
  });
  const port = await listening(server, onTestFinished);
  const place = { apiKey: "key", apiUrl: `http://127.0.0.1:${port}/api` };
  const config = await configFor(place, overrides);
  const request = { session: "s1", boundary, log: logged().log, signal: new AbortController().signal };
  await expect(startMachine(new Account(config), request)).rejects.toThrow("recorded");
  expect(bodies).toHaveLength(1);
  return JSON.parse(bodies[0] ?? "{}");
}

const always = {
  name: "ambit-s1",
  env: {},
  public: false,
  target: "us",
  autoStopInterval: 15,
  autoDeleteInterval: 0,
  ttlMinutes: 1_440,
  labels: {
    ambit: "sandbox",
    "ambit-deployment": "ambit",
    "ambit-replica": expect.stringMatching(/^[0-9a-f]{12}-[0-9a-f]{12}$/),
    "ambit-session": "s1",
    "ambit-expires": expect.stringMatching(/^\d{10}$/),
    "code-toolbox-language": "javascript",
  },
};

describe("the request that makes a sandbox", () => {
  it.each<[string, Boundary, object, object]>([
    ["no boundary", unlimited, {}, { snapshot: "root" }],
    ["no network", closed, {}, { snapshot: "root", networkBlockAll: true }],
    ["a list of nothing", listing(), {}, { snapshot: "root", networkBlockAll: true }],
    [
      "names",
      listing("a.example", "*.b.example"),
      {},
      { snapshot: "root", domainAllowList: "a.example,*.b.example" },
    ],
    [
      "ranges",
      listing("10.0.0.0/8", "192.0.2.1"),
      {},
      { snapshot: "root", networkAllowList: "10.0.0.0/8,192.0.2.1/32" },
    ],
    ["the organisation's own snapshot", closed, { snapshot: undefined }, { networkBlockAll: true }],
    [
      "an image with sizes",
      { ...closed, resources: { cpus: 2, memoryMb: 4_096, diskMb: 8_192 } },
      { snapshot: undefined, image: "node:22" },
      {
        buildInfo: { dockerfileContent: "FROM node:22\n" },
        cpu: 2,
        memory: 4,
        disk: 8,
        networkBlockAll: true,
      },
    ],
    [
      "an image without",
      closed,
      { snapshot: undefined, image: "node:22" },
      { buildInfo: { dockerfileContent: "FROM node:22\n" }, networkBlockAll: true },
    ],
    [
      "other settings",
      closed,
      { target: "eu", autoStopMinutes: 5, ttlMinutes: 30 },
      { snapshot: "root", networkBlockAll: true, target: "eu", autoStopInterval: 5, ttlMinutes: 30 },
    ],
  ])("%s", async (_what, boundary, overrides, more) => {
    expect(await posted(boundary, overrides)).toEqual({ ...always, ...more });
  });
});

describe("settings that are read back", () => {
  const order: SandboxOrder = {
    name: "n",
    source: { image: "node:22" },
    resources: { cpu: 2, memory: 4, disk: 8 },
    network: { networkAllowList: "10.0.0.0/8,192.0.2.1/32" },
    labels: { ambit: "sandbox" },
    env: { A: "1" },
    secrets: {},
    autoStopMinutes: 15,
    ttlMinutes: 60,
  };
  const same: MachineView = {
    state: "started",
    errorReason: undefined,
    labels: { ambit: "sandbox", "code-toolbox-language": "javascript" },
    env: { A: "1", B: "of the platform" },
    isPublic: false,
    networkBlockAll: false,
    networkAllowList: ["192.0.2.1/32", "10.0.0.0/8"],
    domainAllowList: [],
    cpu: 2,
    memory: 4,
    disk: 8,
    autoStopMinutes: 15,
    autoDeleteMinutes: 0,
    hasTimeToLive: true,
    supervisor: "daemon",
  };

  it("match in another order, and with more labels and variables", () => {
    expect(differences(order, same)).toEqual([]);
  });

  it("need no time to live, which older versions don't have", () => {
    expect(differences(order, { ...same, hasTimeToLive: false })).toEqual([]);
  });

  it.each<[Partial<MachineView>, string, boolean]>([
    [{ networkBlockAll: true }, "networkBlockAll is true, not", true],
    [{ networkAllowList: [] }, "networkAllowList is empty, not 10.0.0.0/8,192.0.2.1/32", true],
    [{ networkAllowList: ["10.0.0.0/8", "0.0.0.0/0"] }, "networkAllowList is 0.0.0.0/0,10.0.0.0/8", true],
    [{ domainAllowList: ["example.com"] }, "domainAllowList is example.com, not empty", true],
    [{ cpu: 4 }, "cpu is 4, not 2", true],
    [{ memory: 8 }, "memory is 8, not 4", true],
    [{ disk: 10 }, "disk is 10, not 8", true],
    [{ isPublic: true }, "public is true, not", true],
    [{ labels: {} }, "the label ambit is empty, not sandbox", false],
    [{ env: { A: "secret-2" } }, "the variable A has another value", false],
    [{ autoStopMinutes: undefined }, "autoStopInterval is empty, not 15", false],
    [{ autoDeleteMinutes: -1 }, "autoDeleteInterval is -1, not", false],
  ])("%j differs", (change, text, isLimit) => {
    const found = differences(order, { ...same, ...change });
    expect(found).toEqual([{ isLimit, text: expect.stringMatching(new RegExp(`^${text}`)) }]);
    expect(JSON.stringify(found)).not.toContain("secret-2");
  });
});

describe("the owner of a sandbox", () => {
  const owner = { deployment: "d", replica: "a-b", session: "s", expires: 1_795_000_000 };

  it("is read from its labels", () => {
    expect(ownershipOf({ ...labelsOf(owner), "code-toolbox-language": "javascript" })).toEqual(owner);
  });

  it.each([
    ["no labels", {}],
    ["somebody else's", { app: "x" }],
    ["only the mark", { ambit: "sandbox" }],
    ["one that is missing", (({ "ambit-expires": _expires, ...rest }) => rest)(labelsOf(owner))],
    ["a time that is none", { ...labelsOf(owner), "ambit-expires": "soon" }],
  ])("isn't read from %s", (_what, labels) => {
    expect(ownershipOf(labels)).toBeUndefined();
  });
});
