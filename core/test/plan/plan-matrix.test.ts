import { type ActorRow, executor, sandbox, toolSource } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import { gapLines } from "../../src/errors.js";
import {
  callback,
  client,
  code,
  full,
  gapsIn,
  http,
  lacks,
  local,
  needed,
  off,
  planned,
  remote,
  stdio,
  tool,
} from "./planning.js";

const web = { port: 4_000, name: "web" };

describe("the enforcement matrix", () => {
  const both = [...lacks("local", ["network.deny"]), ...lacks("local", needed)];
  const cells: [what: string, body: object, sandbox: ActorRow, gaps: string[]][] = [
    ["network on, local", {}, local, []],
    ["network on, remote", {}, remote, []],
    ["network off, local", { sandboxPermission: off }, local, both],
    [
      "network off, local, best_effort",
      { sandboxPermission: { ...off, enforcement: "best_effort" } },
      local,
      both,
    ],
    ["network restricted, local", { sandboxPermission: { network: "restricted" } }, local, both],
    ["network off, remote", { sandboxPermission: off }, remote, []],
    [
      "allowlist, local",
      { sandboxPermission: { network: { allowlist: ["10.0.0.0/8"] } } },
      local,
      lacks("local", ["network.allow-cidr", ...needed]),
    ],
    [
      "allowlist of ranges, remote",
      { sandboxPermission: { network: { allowlist: ["10.0.0.0/8"] } } },
      remote,
      [],
    ],
    [
      "allowlist of names, remote",
      { sandboxPermission: { network: { allowlist: ["example.com", "10.0.0.0/8"] } } },
      remote,
      lacks("remote", ["network.allow-host"]),
    ],
    ["empty allowlist, local", { sandboxPermission: { network: { allowlist: [] } } }, local, both],
    [
      "empty allowlist, remote",
      { sandboxPermission: { network: { mode: "allowlist", allowlist: [] } } },
      remote,
      [],
    ],
    ["filesystem on, local", { sandboxPermission: { filesystem: "on" } }, local, []],
    [
      "filesystem readonly, remote",
      { sandboxPermission: { filesystem: "readonly" } },
      remote,
      lacks("remote", ["filesystem.read-only", "filesystem.host-hidden"]),
    ],
    ["filesystem off, full", { sandboxPermission: { filesystem: "off" } }, full, []],
    [
      "resources, remote",
      { sandboxPermission: { resources: { memoryMb: 64 } } },
      remote,
      lacks("remote", ["resources.memory"]),
    ],
    ["ports, local", { ports: [web] }, local, lacks("local", ["inbound.ports", ...needed])],
    ["ports, remote", { ports: [web] }, remote, lacks("remote", ["inbound.ports"])],
    [
      "ports, remote, best_effort",
      { ports: [web], sandboxPermission: { enforcement: "best_effort" } },
      remote,
      lacks("remote", ["inbound.ports"]),
    ],
    ["ports, full", { ports: [web] }, full, []],
    ["no ports, remote", { ports: [] }, remote, []],
    ["stdio MCP server, local", { mcpServers: [stdio] }, local, ["local process.contained files"]],
    [
      "stdio MCP server, local, best_effort",
      { mcpServers: [stdio], sandboxPermission: { enforcement: "best_effort" } },
      local,
      ["local process.contained files"],
    ],
    ["stdio MCP server, remote", { mcpServers: [stdio] }, remote, []],
    ["HTTP MCP server without a boundary, local", { mcpServers: [http] }, local, []],
    ["code tool without values, local", { customTools: [{ ...tool, kind: "code" }] }, local, []],
    [
      "code tool with values, local",
      { customTools: [{ ...tool, kind: "code", env: { K: "value" } }] },
      local,
      ["local environment.per-tool look_up"],
    ],
    [
      "code tool with values, remote",
      { customTools: [{ ...tool, kind: "code", env: { K: "v" } }] },
      remote,
      [],
    ],
    [
      "code tool under network off, remote",
      { customTools: [{ ...tool, kind: "code" }], sandboxPermission: off },
      remote,
      [],
    ],
    [
      "callback tool under network off, remote",
      { customTools: [tool], sandboxPermission: off },
      remote,
      ["callback network.deny look_up"],
    ],
    ["callback tool without a boundary, local", { customTools: [tool] }, local, []],
    [
      "client tool under network off, remote",
      { customTools: [{ ...tool, kind: "client" }], sandboxPermission: off },
      remote,
      [],
    ],
    [
      "HTTP MCP server under network off, remote",
      { mcpServers: [http], sandboxPermission: off },
      remote,
      ["mcp-http-client network.deny docs"],
    ],
  ];

  const rows = {
    executors: [callback(), code(), client()],
    toolSources: [
      toolSource({ touches: ["network"] }),
      toolSource({ connection: "stdio", touches: ["process"] }),
    ],
  };

  test.each(cells)("%s", (_what, body, row, gaps) => {
    const plan = planned(body, { ...rows, sandboxes: [sandbox(row)] });
    expect(gapsIn(plan)).toEqual(gaps);
    expect(plan.accepted).toBe(gaps.length === 0);
  });

  test("best_effort accepts gaps of actors on the runner, names them, and accepts nothing else", () => {
    const body = {
      customTools: [tool],
      mcpServers: [http],
      sandboxPermission: { ...off, enforcement: "best_effort" },
    };
    const plan = planned(body, { ...rows, sandboxes: [sandbox(remote)] });
    expect(plan).toMatchObject({
      accepted: true,
      outside: [
        { actor: "callback", capability: "network.deny", subject: "look_up" },
        { actor: "mcp-http-client", capability: "network.deny", subject: "docs" },
      ],
    });
    const weaker = planned(body, { ...rows, sandboxes: [sandbox(local)] });
    expect(gapsIn(weaker)).toEqual(both);
  });

  test("the refusal of a stdio server names the reason for each requirement", () => {
    const plan = planned({ mcpServers: [stdio] }, { ...rows, sandboxes: [sandbox(local)] });
    expect(plan.accepted ? [] : plan.gaps).toMatchObject([
      { requiredBy: "stdio MCP servers need a sandbox that confines processes", subject: "files" },
    ]);
  });
});

describe("a sandbox that can't carry connections to these ports", () => {
  const stated = {
    capability: "inbound.ports",
    reason: "the port is taken",
    fix: "use another port",
  } as const;

  test("is a gap with its own reason, only where the request has ports", () => {
    const sandboxes = [sandbox({ ...full, states: [stated] })];
    const plan = planned({ ports: [web] }, { sandboxes });
    expect(plan).toMatchObject({ accepted: false, gaps: [{ actor: "full", ...stated }] });
    expect(planned({ sandboxPermission: off }, { sandboxes }).accepted).toBe(true);
  });

  test("is passed over for the next one, unless it is named", () => {
    const sandboxes = [sandbox(remote), sandbox(full)];
    const plan = planned({ ports: [web] }, { sandboxes });
    expect(plan.accepted && plan.sandbox.actor.name).toBe("full");
    expect(gapsIn(planned({ ports: [web], sandbox: "remote" }, { sandboxes }))).toEqual([
      "remote inbound.ports",
    ]);
  });
});

describe("claims ∩ probed", () => {
  const body = { sandboxPermission: off };

  test.each<[what: string, row: ActorRow, reason: string, fix: string]>([
    ["claimed, not proven", { claims: ["network.deny", ...needed], proven: needed }, "EPERM", "allow it"],
    [
      "not claimed",
      { claims: needed },
      "the sandbox 'local' doesn't claim it",
      "name another sandbox that does, or restrict less",
    ],
  ])("%s is a gap with its fix", (_what, row, reason, fix) => {
    const plan = planned(body, { sandboxes: [sandbox(row)] });
    expect(plan).toMatchObject({ gaps: [{ actor: "local", capability: "network.deny", reason, fix }] });
  });

  test("a claim without a finding", () => {
    const unprobed = { ...sandbox(full), findings: new Map() };
    const plan = planned(body, { sandboxes: [unprobed] });
    expect(plan.accepted ? [] : plan.gaps.map(({ reason }) => reason)).toEqual(
      Array(3).fill("the sandbox 'full' has no finding about it on this host"),
    );
  });

  test("each gap says which field of the request requires it, and what of the request helps", () => {
    const sql = { ...executor({ kind: "callback", touches: ["network"] }), plugin: "my-sql" };
    const gapOf = (permission: object) => {
      const body = { sandboxPermission: permission, customTools: [tool] };
      const plan = planned(body, { sandboxes: [sandbox(full)], executors: [sql] });
      return plan.accepted ? plan.outside : plan.gaps;
    };
    expect(gapOf(off)).toEqual([
      {
        actor: "callback",
        capability: "network.deny",
        subject: "look_up",
        requiredBy: "sandboxPermission.network allows nothing",
        reason: "the executor 'callback' of plugin my-sql doesn't claim it",
        fix: `remove the tool 'look_up' or restrict less, or accept this with sandboxPermission.enforcement "best_effort"`,
      },
    ]);
    expect(gapOf({ ...off, enforcement: "best_effort" })).toMatchObject([
      { fix: "remove the tool 'look_up' or restrict less" },
    ]);
    const bare = planned(
      { sandboxPermission: { ...off, filesystem: "workspace" } },
      { sandboxes: [sandbox(local)] },
    );
    expect(bare.accepted ? [] : gapLines(bare.gaps)).toEqual([
      `local · network.deny (sandboxPermission.network allows nothing), filesystem.workspace-only, filesystem.host-hidden (sandboxPermission.filesystem is "workspace"), process.contained, environment.named-only (every boundary needs it): the sandbox 'local' doesn't claim it: name another sandbox that does, or restrict less`,
    ]);
  });

  test("a finding beyond the claims proves nothing", () => {
    const row = sandbox({ claims: needed });
    const findings = new Map([...row.findings, ...sandbox(full).findings]);
    expect(gapsIn(planned(body, { sandboxes: [{ ...row, findings }] }))).toEqual(["local network.deny"]);
  });
});
