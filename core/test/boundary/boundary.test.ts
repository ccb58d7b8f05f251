import { boundaryOf, request } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import { type Boundary, isRestricted, normaliseBoundary } from "../../src/boundary.js";
import { requirementsOf } from "../../src/plan/index.js";

function normalised(sandboxPermission: object) {
  return normaliseBoundary(request({ sandboxPermission }).sandboxPermission);
}

const open = { mode: "on", readable: [], writable: [], denied: [] };

describe("normaliseBoundary", () => {
  test.each<[what: string, permission: object, expected: object]>([
    [
      "nothing said is no boundary",
      {},
      { network: { mode: "on", rules: [] }, filesystem: open, secrets: "visible", enforcement: "strict" },
    ],
    ["on", { network: "on" }, { network: { mode: "on", rules: [] } }],
    ["off", { network: "off" }, { network: { mode: "off", rules: [] } }],
    ["restricted allows nothing", { network: "restricted" }, { network: { mode: "off", rules: [] } }],
    ["mode alone", { network: { mode: "off" } }, { network: { mode: "off" } }],
    ["an empty list allows nothing", { network: { allowlist: [] } }, { network: { mode: "off", rules: [] } }],
    [
      "an allowlist without a list allows nothing",
      { network: { mode: "allowlist" } },
      { network: { mode: "off" } },
    ],
    ["an empty list beside on", { network: { mode: "on", allowlist: [] } }, { network: { mode: "on" } }],
    [
      "a list without a mode means allowlist",
      { network: { allowlist: ["A.example", "*.b.example:443", "10.1.2.3/8"] } },
      {
        network: {
          mode: "allowlist",
          rules: [
            { kind: "host", name: "a.example", subdomains: false },
            { kind: "host", name: "b.example", subdomains: true, port: 443 },
            { kind: "range", cidr: "10.0.0.0/8", family: 4 },
          ],
        },
      },
    ],
    ["filesystem by mode", { filesystem: "readonly" }, { filesystem: { ...open, mode: "readonly" } }],
    ["filesystem restricted is off", { filesystem: "restricted" }, { filesystem: { ...open, mode: "off" } }],
    [
      "path lists ask for a workspace",
      { filesystem: { denied: ["a"] } },
      { filesystem: { ...open, mode: "workspace", denied: ["a"] } },
    ],
    ["best_effort", { enforcement: "best_effort" }, { enforcement: "best_effort" }],
    ["resources", { resources: { memoryMb: 1 } }, { resources: { memoryMb: 1 } }],
  ])("%s", (_what, permission, expected) => {
    const { boundary, issues } = normalised(permission);
    expect(issues).toEqual([]);
    expect(boundary).toMatchObject(expected);
  });

  test("an invalid entry is an issue with its path, and allows nothing", () => {
    const { boundary, issues } = normalised({
      network: { allowlist: ["https://x.example", "ok.example", "1.2.3.4/99"] },
    });
    expect(issues.map(({ path }) => path)).toEqual([
      "sandboxPermission.network.allowlist[0]",
      "sandboxPermission.network.allowlist[2]",
    ]);
    expect(boundary.network.rules).toHaveLength(1);
  });

  test("lists without effect are refused, not dropped", () => {
    const filesystem = { mode: "on" as const, denied: ["secrets"], writable: ["out"] };
    const { issues } = normaliseBoundary({ filesystem, enforcement: "strict" });
    expect(issues.map(({ path }) => path)).toEqual([
      "sandboxPermission.filesystem.writable",
      "sandboxPermission.filesystem.denied",
    ]);
    const network = { mode: "off" as const, allowlist: ["a.example"] };
    expect(normaliseBoundary({ network, enforcement: "strict" }).issues).toHaveLength(1);
  });
});

describe("requirementsOf", () => {
  const both = ["process.contained", "environment.named-only"];

  test.each<[what: string, body: object, expected: string[]]>([
    ["no boundary", {}, []],
    ["network on", { sandboxPermission: { network: "on" } }, []],
    ["network off", { sandboxPermission: { network: "off" } }, ["network.deny", ...both]],
    [
      "names",
      { sandboxPermission: { network: { allowlist: ["a.example", "b.example"] } } },
      ["network.allow-host", ...both],
    ],
    [
      "ranges",
      { sandboxPermission: { network: { allowlist: ["10.0.0.1"] } } },
      ["network.allow-cidr", ...both],
    ],
    [
      "names and ranges",
      { sandboxPermission: { network: { allowlist: ["10.0.0.1", "a.example"] } } },
      ["network.allow-host", "network.allow-cidr", ...both],
    ],
    [
      "workspace",
      { sandboxPermission: { filesystem: "workspace" } },
      ["filesystem.workspace-only", "filesystem.host-hidden", ...both],
    ],
    [
      "readonly",
      { sandboxPermission: { filesystem: "readonly" } },
      ["filesystem.read-only", "filesystem.host-hidden", ...both],
    ],
    [
      "no workspace",
      { sandboxPermission: { filesystem: "off" } },
      ["filesystem.none", "filesystem.host-hidden", ...both],
    ],
    [
      "every resource",
      { sandboxPermission: { resources: { memoryMb: 1, processes: 1, cpus: 0.5, diskMb: 1 } } },
      ["resources.memory", "resources.processes", "resources.cpu", "resources.disk", ...both],
    ],
    ["no resource", { sandboxPermission: { resources: {} } }, []],
    ["secrets", { sandboxPermission: { secrets: "hidden" } }, ["secrets.hidden", ...both]],
    ["a tool's values", { customTools: [{ name: "a", env: { K: "v" } }] }, ["environment.per-tool"]],
    ["a tool's empty env", { customTools: [{ name: "a", env: {} }] }, []],
    [
      "a stdio server",
      { mcpServers: [{ name: "s", connection: { type: "stdio", command: "x" } }] },
      ["process.contained"],
    ],
    [
      "a stdio server's values",
      { mcpServers: [{ name: "s", connection: { type: "stdio", command: "x", env: { K: "v" } } }] },
      ["process.contained", "environment.per-tool"],
    ],
    [
      "an HTTP server",
      { mcpServers: [{ name: "s", connection: { type: "http", url: "https://x.example" } }] },
      [],
    ],
  ])("%s", (_what, body, expected) => {
    const asked = request(body);
    const boundary = boundaryOf(asked);
    expect(requirementsOf(boundary, asked).map(({ capability }) => capability)).toEqual(expected);
  });

  test("isRestricted agrees with what the boundary alone requires", () => {
    const asked = request({});
    const bare: Boundary = boundaryOf(asked);
    expect(isRestricted(bare)).toBe(false);
    expect(isRestricted({ ...bare, secrets: "hidden" })).toBe(true);
    expect(isRestricted({ ...bare, resources: { cpus: 1 } })).toBe(true);
  });
});
