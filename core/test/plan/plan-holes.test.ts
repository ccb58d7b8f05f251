import { type ActorRow, delivery, executor, harness, sandbox, toolSource } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import type { Gap } from "../../src/contract/index.js";
import type { Candidates } from "../../src/plan/index.js";
import { callback, code, full, gapsIn, http, lacks, needed, off, planned, stdio, tool } from "./planning.js";

describe("no actor slips through", () => {
  const stated: Gap = { actor: "", capability: "network.allow-host", reason: "not listed", fix: "list it" };
  const restricted = { sandboxPermission: off };

  test("a sandbox that declares no touched domain must cover everything nevertheless: others inherit from it", () => {
    const rows = { sandboxes: [sandbox({ touches: [] })] };
    expect(gapsIn(planned(restricted, rows))).toEqual(lacks("local", ["network.deny", ...needed]));
  });

  test("a sandbox on the runner's site isn't accepted under best_effort", () => {
    const body = { sandboxPermission: { ...off, enforcement: "best_effort" } };
    expect(planned(body, { sandboxes: [sandbox({ site: "runner" })] }).accepted).toBe(false);
  });

  test("an actor in the sandbox inherits its guarantees, but its own gaps count", () => {
    const rows = (states: readonly Gap[]) => ({
      sandboxes: [sandbox(full)],
      executors: [executor({ kind: "code", site: "sandbox", touches: ["network"], states })],
    });
    const body = { ...restricted, customTools: [{ ...tool, kind: "code" }] };
    expect(planned(body, rows([])).accepted).toBe(true);
    expect(gapsIn(planned(body, rows([stated])))).toEqual(["code network.allow-host look_up"]);
    const eased = { ...body, sandboxPermission: { ...off, enforcement: "best_effort" } };
    expect(planned(eased, rows([stated])).accepted).toBe(false);
  });

  test("a reported gap counts even in a domain that the actor doesn't touch", () => {
    const rows = { sandboxes: [sandbox(full)], executors: [executor({ touches: [], states: [stated] })] };
    expect(gapsIn(planned({ ...restricted, customTools: [tool] }, rows))).toEqual([
      "callback network.allow-host look_up",
    ]);
    // Nothing of its domain is required here.
    const files = { sandboxPermission: { filesystem: "readonly" }, customTools: [tool] };
    expect(planned(files, rows).accepted).toBe(true);
  });

  test("an executor with the claim, but a gap for this tool", () => {
    const claims = ["network.deny", "network.allow-host"] as const;
    const rows = {
      sandboxes: [sandbox(full)],
      executors: [executor({ claims, touches: ["network"], states: [stated] })],
    };
    expect(gapsIn(planned({ ...restricted, customTools: [tool] }, rows))).toEqual([
      "callback network.allow-host look_up",
    ]);
  });

  test("only tools can act on the caller's site", () => {
    const rows = (site: "caller" | "sandbox") => ({
      sandboxes: [sandbox(full)],
      harnesses: [harness({ site })],
    });
    expect(planned(restricted, rows("sandbox")).accepted).toBe(true);
    expect(gapsIn(planned(restricted, rows("caller")))).toEqual(lacks("demo", ["network.deny", ...needed]));
    const source = toolSource({ site: "caller", touches: ["network"] });
    const body = { ...restricted, mcpServers: [http] };
    expect(planned(body, { sandboxes: [sandbox(full)], toolSources: [source] }).accepted).toBe(false);
  });

  test("a delivery needs no claim for its own channel, but one for everything else", () => {
    const body = { sandboxPermission: { ...off, secrets: "hidden" }, customTools: [tool] };
    const rows = (row: ActorRow) => ({
      sandboxes: [sandbox(full)],
      executors: [executor()],
      deliveries: [delivery(row)],
    });
    expect(planned(body, rows({ touches: ["network"] })).accepted).toBe(true);
    expect(gapsIn(planned(body, rows({ touches: ["network", "secrets"] })))).toEqual([
      "mcp-http secrets.hidden",
    ]);
    expect(gapsIn(planned(body, rows({ states: [stated] })))).toEqual(["mcp-http network.allow-host"]);
  });

  test("of two executors of one kind the first is planned and is the one that runs", () => {
    const first = executor({ touches: ["network"] });
    const second = executor({ touches: ["network"], claims: ["network.deny"] });
    const body = { ...restricted, customTools: [tool] };
    const rows = { sandboxes: [sandbox(full)] };
    expect(planned(body, { ...rows, executors: [first, second] }).accepted).toBe(false);
    const plan = planned(body, { ...rows, executors: [second, first] });
    expect(plan.accepted && plan.executors.map(({ probed }) => probed)).toEqual([second]);
  });

  test.each<[what: string, body: object, rows: Partial<Candidates>, gap: string]>([
    [
      "the agent's credentials",
      {},
      { harnesses: [harness({ visible: ["OPENAI_API_KEY"] })] },
      "demo secrets.hidden",
    ],
    [
      "a code tool's values",
      { customTools: [{ ...tool, kind: "code", env: { K: "v" } }] },
      {},
      "code secrets.hidden look_up",
    ],
    [
      "a stdio server's values",
      { mcpServers: [{ ...stdio, connection: { ...stdio.connection, env: { K: "v" } } }] },
      {},
      "mcp-stdio-client secrets.hidden files",
    ],
  ])("secrets that the request itself puts inside are a gap: %s", (_what, body, rows, gap) => {
    const all = {
      sandboxes: [sandbox(full)],
      executors: [code(), callback()],
      toolSources: [toolSource({ connection: "stdio" })],
      ...rows,
    };
    for (const enforcement of ["strict", "best_effort"]) {
      const plan = planned({ ...body, sandboxPermission: { secrets: "hidden", enforcement } }, all);
      expect(gapsIn(plan)).toEqual([gap]);
    }
    expect(planned(body, all).accepted).toBe(true);
  });

  test("a key that the sandbox hides isn't visible: the plan lists what the sandbox gets", () => {
    const key = { name: "KEY", value: "v", hosts: ["api.example.com"] };
    const other = { name: "OTHER", value: "w", hosts: ["elsewhere.example.com"] };
    const agents = [harness({ visible: ["KEY", "OTHER"], hideable: [key, other] })];
    const hiding = (...names: string[]) =>
      sandbox({
        ...full,
        hides: ({ hosts }) =>
          hosts.every((host) => names.includes(host)) || { reason: "it isn't on the list", fix: "list it" },
      });
    const plan = (one: ReturnType<typeof sandbox>, secrets: string) =>
      planned({ sandboxPermission: { secrets } }, { sandboxes: [one], harnesses: agents });
    const all = hiding("api.example.com", "elsewhere.example.com");
    expect(plan(all, "hidden")).toMatchObject({ accepted: true, hidden: [key, other] });
    expect(plan(all, "visible")).toMatchObject({ accepted: true, hidden: [] });
    const [gap] = ((refused) => (refused.accepted ? [] : refused.gaps))(
      plan(hiding("api.example.com"), "hidden"),
    );
    expect(gap?.reason).toBe("OTHER can be read in the sandbox (OTHER: it isn't on the list)");
    expect(gap?.fix).toMatch(/^list it; or /);
    expect(gapsIn(plan(sandbox(full), "hidden"))).toEqual(["demo secrets.hidden"]);
    // A sandbox that says it could, and isn't proven to, hides nothing.
    const unproven = sandbox({ ...full, proven: [], hides: () => true });
    expect(gapsIn(plan(unproven, "hidden"))).toContain("full secrets.hidden");
  });

  test("an agent that isn't on the runner is no issue in a sandbox that has its own programs", () => {
    const agents = [harness({ issuesOnRunner: [{ path: "harness", message: "isn't installed" }] })];
    const image = sandbox({ name: "remote", rootfs: "image" });
    const issuesIn = (body: object) => {
      const plan = planned(body, { sandboxes: [sandbox(), image], harnesses: agents });
      return plan.accepted ? [] : plan.issues.map(({ message }) => message);
    };
    expect(issuesIn({})).toEqual(["isn't installed"]);
    expect(issuesIn({ sandbox: "remote" })).toEqual([]);
  });

  test("and aren't listed twice if the actor reports them itself", () => {
    const states = [{ capability: "secrets.hidden", reason: "own words", fix: "own fix" }] as const;
    const rows = { sandboxes: [sandbox(full)], harnesses: [harness({ visible: ["K"], states })] };
    const plan = planned({ sandboxPermission: { secrets: "hidden" } }, rows);
    expect(plan).toMatchObject({ gaps: [{ reason: "own words" }] });
  });
});
