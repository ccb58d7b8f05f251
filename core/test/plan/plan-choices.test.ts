import { boundaryOf, candidates, executor, harness, request, sandbox, toolSource } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import { boundedRequest, planRun } from "../../src/plan/index.js";
import type { Readability } from "../../src/plugin/index.js";
import { full, gapsIn, http, lacks, local, needed, off, planned, remote, stdio, tool } from "./planning.js";

describe("the choice of the sandbox", () => {
  const body = { sandboxPermission: off };
  const sandboxes = [sandbox(local), sandbox(remote), sandbox(full)];

  test("is the first configured one that covers everything", () => {
    const plan = planned(body, { sandboxes });
    expect(plan.accepted && plan.sandbox.actor.name).toBe("remote");
    const files = planned({ sandboxPermission: { ...off, filesystem: "readonly" } }, { sandboxes });
    expect(files.accepted && files.sandbox.actor.name).toBe("full");
    const open = planned({}, { sandboxes });
    expect(open.accepted && open.sandbox.actor.name).toBe("local");
  });

  test("is the named one, and no other", () => {
    expect(gapsIn(planned({ ...body, sandbox: "local" }, { sandboxes }))).toEqual(
      lacks("local", ["network.deny", ...needed]),
    );
    const named = planned({ ...body, sandbox: "full" }, { sandboxes });
    expect(named.accepted && named.sandbox.actor.name).toBe("full");
  });

  test("a refusal lists what each one lacks", () => {
    const asked = { sandboxPermission: { ...off, resources: { diskMb: 1 } } };
    expect(gapsIn(planned(asked, { sandboxes: [sandbox(local), sandbox(remote)] }))).toEqual([
      ...lacks("local", ["network.deny", "resources.disk", ...needed]),
      ...lacks("remote", ["resources.disk"]),
    ]);
  });

  test.each([
    [{ sandbox: "daytona" }, sandboxes, "unknown sandbox 'daytona'; expected one of local, remote, full"],
    [{}, [], "no sandbox is loaded; expected one of (none loaded)"],
  ])("%j of none that fits", (asked, loaded, message) => {
    expect(planned(asked, { sandboxes: loaded })).toEqual({
      accepted: false,
      gaps: [],
      issues: [{ path: "sandbox", message }],
    });
  });
});

describe("the choice of the sandbox by its image", () => {
  const sandboxes = [
    sandbox(full),
    sandbox({ ...full, name: "old", image: "node:20" }),
    sandbox({ ...remote, name: "new", image: "docker.io/library/node:22" }),
    sandbox({ ...full, name: "other", image: "node:22" }),
  ];

  test.each([
    [{}, "full"],
    [{ environment: { image: "node:20" } }, "old"],
    [{ environment: { image: "node:22" } }, "new"],
    [{ environment: { image: "node:22" }, sandbox: "other" }, "other"],
    [{ environment: { image: "node:22" }, sandboxPermission: { filesystem: "readonly" } }, "other"],
  ])("%j → %s", (body, name) => {
    const plan = planned(body, { sandboxes });
    expect(plan.accepted && plan.sandbox.actor.name).toBe(name);
  });

  test.each([
    [{}, "no image (full), node:20 (old), docker.io/library/node:22 (new), node:22 (other)"],
    [{ sandbox: "full" }, "no image (full)"],
    [{ sandbox: "old" }, "node:20 (old)"],
  ])("none has it, with %j", (body, known) => {
    expect(planned({ ...body, environment: { image: "python:3" } }, { sandboxes })).toEqual({
      accepted: false,
      gaps: [],
      issues: [
        {
          path: "environment.image",
          message: `no sandbox that the request may use has the image 'python:3'; expected one of ${known}, or add a backend with it to the configuration`,
        },
      ],
    });
  });

  test("the gaps of one that has it are reported", () => {
    const body = {
      environment: { image: "node:22" },
      sandbox: "new",
      sandboxPermission: { filesystem: "off" },
    };
    expect(gapsIn(planned(body, { sandboxes }))).toEqual(
      lacks("new", ["filesystem.none", "filesystem.host-hidden"]),
    );
  });
});

describe("the choice of the sandbox whose workspace is a folder of this host", () => {
  const workspaceFolder = "/srv/project";
  const able = { ...full, name: "able", opensFolders: true } as const;
  const sandboxes = [sandbox(full), sandbox(able)];

  test("is one that can have it", () => {
    const plan = planned({}, { sandboxes, workspaceFolder });
    expect(plan.accepted && [plan.sandbox.actor.name, plan.workspaceFolder]).toEqual([
      "able",
      workspaceFolder,
    ]);
    // Control: without such a folder, it is the first.
    const other = planned({}, { sandboxes });
    expect(other.accepted && [other.sandbox.actor.name, other.workspaceFolder]).toEqual(["full", undefined]);
  });

  test.each([
    [{ sandbox: "full" }, sandboxes, "use able"],
    [{}, [sandbox(full)], "load sandbox-local"],
  ])("%j of none that can is refused", (body, loaded, fix) => {
    expect(planned(body, { sandboxes: loaded, workspaceFolder })).toEqual({
      accepted: false,
      gaps: [],
      issues: [
        {
          path: "sandbox",
          message: `full can't have a folder of this host as its workspace: ${fix}, or run on a copy of the folder`,
        },
      ],
    });
  });
});

describe("the choice of the harness", () => {
  const harnesses = [harness({ id: "first", aliases: ["second", "old"] }), harness({ id: "second" })];

  test.each([
    [undefined, "first"],
    ["first", "first"],
    ["old", "first"],
    ["second", "second"],
  ])("%s → %s", (named, id) => {
    const plan = planned(named === undefined ? {} : { harness: named }, { harnesses });
    expect(plan.accepted && plan.harness.actor.id).toBe(id);
  });

  test("an unknown one", () => {
    expect(planned({ harness: "pi" }, { harnesses })).toMatchObject({
      issues: [{ path: "harness", message: "unknown harness 'pi'; expected one of first, second" }],
    });
  });
});

describe("issues are reported together with gaps", () => {
  test("all of them at once, by path", () => {
    const issue = { path: "callRef", message: "is required" };
    const whole = { path: "", message: "is wrong" };
    const rows = {
      sandboxes: [sandbox(local)],
      harnesses: [harness({ issues: [{ path: "model", message: "unknown" }] })],
      executors: [executor({ issues: [issue, whole] })],
      toolSources: [toolSource({ issues: [{ path: "connection.url", message: "must be https" }] })],
    };
    const asked = request({
      sandboxPermission: off,
      customTools: [tool, { ...tool, name: "other", kind: "exotic" }],
      mcpServers: [http, stdio],
    });
    const plan = planRun(boundedRequest(asked, boundaryOf(asked)), candidates(rows), [
      { path: "messages", message: "none" },
    ]);
    expect(gapsIn(plan)).toEqual(lacks("local", ["network.deny", ...needed]));
    expect(plan.accepted ? [] : plan.issues).toEqual([
      { path: "messages", message: "none" },
      { path: "model", message: "unknown" },
      { path: "customTools[0].callRef", message: "is required" },
      { path: "customTools[0]", message: "is wrong" },
      {
        path: "customTools[1].kind",
        message: "no loaded plugin executes tools of kind 'exotic'; expected one of callback",
      },
      { path: "mcpServers[0].connection.url", message: "must be https" },
      {
        path: "mcpServers[1].connection.type",
        message: "no loaded plugin connects to MCP servers over stdio: load one, or remove the server",
      },
    ]);
  });

  test("an issue alone refuses", () => {
    const asked = request({});
    expect(
      planRun(boundedRequest(asked, boundaryOf(asked)), candidates(), [{ path: "messages", message: "none" }])
        .accepted,
    ).toBe(false);
  });

  test("tools without a delivery", () => {
    const rows = { deliveries: [], executors: [executor()], toolSources: [toolSource()] };
    expect(planned({}, rows).accepted).toBe(true);
    expect(planned({ customTools: [tool] }, rows)).toMatchObject({ issues: [{ path: "customTools" }] });
    expect(planned({ mcpServers: [http] }, rows)).toMatchObject({ issues: [{ path: "mcpServers" }] });
  });
});

describe("an agent's own files", () => {
  const requiredPaths = [{ path: "/opt/agent", what: "The agent" }];
  const why = {
    reason: "The agent can't be read: /opt/agent has the mode 0700",
    fix: "chmod -R go+rX /opt/agent",
  };
  const rows = (answer: Readability) => ({
    harnesses: [harness({ requiredPaths })],
    sandboxes: [sandbox({ ...full, reads: ([path]) => (path?.path === "/opt/agent" ? answer : true) })],
  });

  test("are a gap of a boundary, with its fix, where the sandbox's programs can't read them", () => {
    const plan = planned({ sandboxPermission: off }, rows(why));
    expect(plan).toMatchObject({
      accepted: false,
      gaps: [{ actor: "full", capability: "network.deny", ...why }],
    });
    expect(planned({ sandboxPermission: off }, rows(true)).accepted).toBe(true);
  });

  test("are no gap without a boundary: the sandbox may do without a jail", () => {
    expect(planned({}, rows(why)).accepted).toBe(true);
  });
});
