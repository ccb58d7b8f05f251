import type { Boundary, HiddenCredential } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { DaytonaSandbox } from "../src/index.js";
import { networkSettings, resourceSettings, takesSecret } from "../src/limits.js";
import { closed, configOf, listing, unlimited } from "./support/boundaries.js";

const eleven = Array.from({ length: 11 }, (_, index) => index + 1);
const withFiles = (filesystem: Partial<Boundary["filesystem"]>): Boundary => ({
  ...unlimited,
  filesystem: { ...unlimited.filesystem, ...filesystem },
});
const withResources = (resources: Boundary["resources"]): Boundary => ({ ...unlimited, resources });

describe("settings that Daytona gets", () => {
  it.each<[string, Boundary, object]>([
    ["no boundary", unlimited, {}],
    ["off", closed, { networkBlockAll: true }],
    ["a list of nothing", listing(), { networkBlockAll: true }],
    [
      "ranges, a single address among them",
      listing("10.0.0.0/8", "203.0.113.7"),
      { networkAllowList: "10.0.0.0/8,203.0.113.7/32" },
    ],
    [
      "names, a wildcard among them",
      listing("api.example.com", "*.Example.org"),
      { domainAllowList: "api.example.com,*.example.org" },
    ],
    ["a name beyond ASCII", listing("bücher.example"), { domainAllowList: "xn--bcher-kva.example" }],
  ])("%s", (_what, boundary, settings) => {
    expect(networkSettings(boundary.network)).toEqual(settings);
  });

  it("sizes in cores and GiB", () => {
    expect(resourceSettings({ cpus: 2, memoryMb: 4_096, diskMb: 8_192 })).toEqual({
      cpu: 2,
      memory: 4,
      disk: 8,
    });
    expect(resourceSettings({})).toEqual({});
  });
});

describe("what Daytona doesn't support is a gap", () => {
  const image = { image: "node:22" };
  it.each<[string, Boundary, string[], object?]>([
    ["nothing asked", unlimited, []],
    ["off", closed, []],
    ["ten ranges", listing(...eleven.slice(1).map((n) => `10.${n}.0.0/16`)), []],
    [
      "eleven ranges",
      listing(...eleven.map((n) => `10.${n}.0.0/16`)),
      ["network.allow-cidr: 11 ranges are listed"],
    ],
    ["ten names", listing(...eleven.slice(1).map((n) => `a${n}.example.com`)), []],
    [
      "eleven names",
      listing(...eleven.map((n) => `a${n}.example.com`)),
      ["network.allow-host: 11 names are listed"],
    ],
    [
      "IPv6",
      listing("2001:db8::/32"),
      ["network.allow-cidr: Daytona accepts only IPv4 ranges, not 2001:db8::/32"],
    ],
    [
      "a port with a name",
      listing("example.com:443"),
      ["network.allow-host: Daytona can't restrict a port, as example.com:443"],
    ],
    ["a port with a range", listing("10.0.0.0/8:443"), ["network.allow-cidr: Daytona can't restrict a port"]],
    [
      "both kinds",
      listing("example.com", "10.0.0.0/8"),
      ["network.allow-host: Daytona accepts names or ranges, not both"],
    ],
    ["one label", listing("localhost"), ["network.allow-host: Daytona doesn't accept localhost"]],
    ["a last label with digits", listing("host.x1"), ["network.allow-host: Daytona doesn't accept host.x1"]],
    [
      "an underscore",
      listing("_srv.example.com"),
      ["network.allow-host: Daytona doesn't accept _srv.example.com"],
    ],
    [
      "a wildcard, refused by the deployer",
      listing("*.example.com"),
      ["network.allow-host: sandbox-daytona is set to refuse"],
      { wildcards: "refuse" },
    ],
    [
      "a workspace",
      withFiles({ mode: "workspace" }),
      ["filesystem.workspace-only: Daytona has no rules for paths"],
    ],
    ["read-only", withFiles({ mode: "readonly" }), ["filesystem.read-only: Daytona has no rules for paths"]],
    ["no workspace", withFiles({ mode: "off" }), ["filesystem.none: Daytona has no rules for paths"]],
    [
      "lists of paths",
      withFiles({ mode: "workspace", denied: ["secret"] }),
      ["filesystem.workspace-only: Daytona has no rules for paths, lists of paths neither"],
    ],
    [
      "memory of a snapshot",
      withResources({ memoryMb: 1_024 }),
      ["resources.memory: a sandbox made from a snapshot has the snapshot's size"],
    ],
    ["whole sizes of an image", withResources({ memoryMb: 2_048, cpus: 2, diskMb: 3_072 }), [], image],
    [
      "half a GiB",
      withResources({ memoryMb: 1_536 }),
      ["resources.memory: Daytona accepts whole GiB of memory, not 1.5"],
      image,
    ],
    [
      "half a core",
      withResources({ cpus: 0.5 }),
      ["resources.cpu: Daytona accepts whole cores, not 0.5"],
      image,
    ],
    [
      "half a GiB of disk",
      withResources({ diskMb: 512 }),
      ["resources.disk: Daytona accepts whole GiB of disk, not 0.5"],
      image,
    ],
    [
      "more than the organisation's",
      withResources({ cpus: 5, memoryMb: 9_216, diskMb: 11_264 }),
      [
        "resources.memory: the organisation allows",
        "resources.cpu: the organisation allows",
        "resources.disk: the organisation allows",
      ],
      image,
    ],
    [
      "more, if the organisation has more",
      withResources({ cpus: 5 }),
      [],
      { ...image, maximum: { cpus: 8 } },
    ],
    [
      "processes",
      withResources({ processes: 10 }),
      ["resources.processes: Daytona can't limit processes"],
      image,
    ],
    [
      "several at once",
      { ...listing("example.com:443", "2001:db8::/32"), resources: { processes: 3 } },
      [
        "network.allow-host: Daytona accepts names or",
        "network.allow-cidr: Daytona accepts only IPv4",
        "network.allow-host: Daytona can't restrict",
        "resources.processes",
      ],
    ],
  ])("%s", (_what, boundary, beginnings, config = {}) => {
    const gaps = new DaytonaSandbox(configOf(config)).gaps(boundary);
    expect(gaps.map(({ capability, reason }) => `${capability}: ${reason}`)).toEqual(
      beginnings.map((beginning) => expect.stringMatching(new RegExp(`^${escaped(beginning)}`))),
    );
    for (const { fix } of gaps) expect(fix).not.toBe("");
  });

  it("claims sizes only with an image", () => {
    expect(new DaytonaSandbox(configOf()).claims).not.toContain("resources.memory");
    expect(new DaytonaSandbox(configOf(image)).claims).toContain("resources.memory");
  });

  it("refuses a snapshot and an image together", () => {
    expect(() => configOf({ snapshot: "a", image: "b" })).toThrow(/not both/);
  });
});

describe("ports inside", () => {
  const gapsOf = (inbound: readonly number[]) =>
    new DaytonaSandbox(configOf()).gaps({ ...unlimited, inbound });

  it("are any but those of Daytona's own daemon, which serves root", () => {
    expect(gapsOf([3_000, 8_080])).toEqual([]);
    for (const port of [2_280, 22_220, 22_222, 33_333])
      expect(gapsOf([3_000, port])).toEqual([
        expect.objectContaining({
          capability: "inbound.ports",
          reason: expect.stringMatching(`the port ${port} `),
        }),
      ]);
  });
});

describe("secrets are accepted", () => {
  it.each<[string, string[], Boundary, boolean]>([
    ["for a listed name", ["api.example.com"], listing("api.example.com"), true],
    ["for a name below a listed wildcard", ["api.example.com"], listing("*.example.com"), true],
    ["without a boundary", ["api.example.com"], unlimited, true],
    [
      "not for a name that isn't listed",
      ["api.example.com", "other.example"],
      listing("api.example.com"),
      false,
    ],
    ["not for a listed wildcard's own name", ["example.com"], listing("*.example.com"), false],
    ["not if no host is allowed", ["api.example.com"], closed, false],
    ["not if only ranges are allowed", ["api.example.com"], listing("10.0.0.0/8"), false],
    ["not without hosts, which would mean every host", [], unlimited, false],
    ["not for an address", ["203.0.113.7"], unlimited, false],
    ["not for one label", ["localhost"], unlimited, false],
  ])("%s", (_what, hosts, boundary, taken) => {
    const answer = takesSecret({ name: "KEY", value: "v", hosts }, boundary.network);
    expect(answer === true).toBe(taken);
  });

  it.each<[string, Partial<HiddenCredential>]>([
    ["restricted to methods", { methods: ["GET"] }],
    ["restricted to paths", { paths: ["/a/*"] }],
    ["restricted to reading", { access: "read" }],
    ["restricted to services of git", { access: ["fetch"] }],
    ["refreshed", { refresh: { url: "https://platform.example.com/mint" } }],
    ["encoded", { as: "basic" }],
    ["for one port", { hosts: ["api.example.com:8443"] }],
  ])("not %s, which the platform doesn't support", (_what, more) => {
    const credential = { name: "KEY", value: "v", hosts: ["api.example.com"], ...more };
    expect(takesSecret(credential, unlimited.network)).toMatchObject({ fix: expect.any(String) });
  });
});

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
