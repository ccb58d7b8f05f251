import type { AgentEvent, Receipt, RunResult } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { Timeline } from "../../../src/cli/display/timeline.js";

const plain = (text: string) => text.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g"), "");

/** What a timeline prints for the events, one every 10 ms. */
function printed(events: readonly AgentEvent[]): string[] {
  const timeline = new Timeline(0);
  return events
    .map((event, index) => plain(timeline.event(event, index * 10)))
    .join("")
    .split("\n")
    .filter((line) => line !== "");
}

describe("Timeline", () => {
  it("shows each event on a line with its time", () => {
    expect(
      printed([
        { type: "message", text: "Hello." },
        { type: "tool_call", id: "1", name: "weather", input: { city: "Bern" } },
        { type: "tool_result", id: "1", output: "rain" },
        {
          type: "boundary_decision",
          target: "a.example:443",
          allowed: false,
          reason: "not listed",
          count: 2,
        },
      ]),
    ).toEqual([
      "   0.00 s  says     Hello.",
      '   0.01 s  calls    weather {"city":"Bern"}',
      "   0.02 s  got      weather: rain",
      "   0.03 s  refused  a.example:443: not listed (2 times)",
    ]);
  });

  it("shows what a subagent does behind the name of the call that began it", () => {
    const within = { parentToolCallId: "1" };
    expect(
      printed([
        { type: "tool_call", id: "1", name: "Agent", input: {} },
        { type: "message_start", id: "m", ...within },
        { type: "message_delta", id: "m", delta: "one\ntwo" },
        { type: "tool_call", id: "2", name: "Bash", input: {}, ...within },
        { type: "message_end", id: "m" },
        { type: "tool_result", id: "2", output: "ok" },
        { type: "tool_result", id: "1", output: "two" },
      ]),
    ).toEqual([
      "   0.00 s  calls    Agent {}",
      "   0.02 s  says     Agent › one",
      "   0.03 s  says     Agent › two",
      "   0.03 s  calls    Agent › Bash {}",
      "   0.05 s  got      Agent › Bash: ok",
      "   0.06 s  got      Agent: two",
    ]);
  });

  it("shows what a call changes in one line for each file, and what the agent changed in its session", () => {
    const path = "/workspace/notes.md";
    const edit = { path, oldText: "one\ntwo\nthree\n", newText: "one\n2\n2.5\nthree\n" };
    expect(
      printed([
        {
          type: "interaction_request",
          id: "a",
          kind: "user_approval",
          payload: { toolName: "edit", changes: [edit], locations: [{ path }] },
        },
        { type: "tool_call", id: "1", name: "edit", input: {}, locations: [{ path, line: 2 }] },
        { type: "tool_output", id: "1", delta: "…" },
        {
          type: "tool_result",
          id: "1",
          output: "done",
          changes: [
            edit,
            { path: "new.txt", newText: "a" },
            { path: "gone.txt", oldText: "a\nb\n", newText: "" },
            { path: "large.csv", omitted: 900_000 },
          ],
        },
        { type: "commands", commands: [{ name: "review" }] },
        { type: "mode", mode: "plan" },
        {
          type: "configuration",
          options: [
            { id: "effort", value: "high" },
            { id: "fast", value: false },
          ],
        },
      ]),
    ).toEqual([
      "   0.00 s  asks     approval of edit {} · a",
      "   0.00 s  would    change /workspace/notes.md +2 -1",
      "   0.01 s  calls    edit {}",
      "   0.03 s  got      edit: done",
      "   0.03 s  changes  /workspace/notes.md +2 -1",
      "   0.03 s  changes  new.txt new +1 -0",
      "   0.03 s  changes  gone.txt +0 -2",
      "   0.03 s  changes  large.csv (900,000 characters)",
      "   0.05 s  mode     plan",
      "   0.06 s  sets     effort=high fast=false",
    ]);
  });

  it("shows a growing text line by line", () => {
    expect(
      printed([
        { type: "message_start", id: "m" },
        { type: "message_delta", id: "m", delta: "one\ntw" },
        { type: "message_delta", id: "m", delta: "o\nthree" },
        { type: "message_end", id: "m" },
      ]),
    ).toEqual(["   0.01 s  says     one", "   0.02 s  says     two", "   0.03 s  says     three"]);
  });

  it("shows text before the next event", () => {
    expect(
      printed([
        { type: "message_delta", id: "m", delta: "Let me" },
        { type: "tool_call", id: "1", name: "look" },
        { type: "message_delta", id: "m", delta: "Done." },
        { type: "message_end", id: "m" },
      ]),
    ).toEqual(["   0.01 s  says     Let me", "   0.01 s  calls    look {}", "   0.03 s  says     Done."]);
  });

  it("truncates long text, and escapes terminal control characters", () => {
    const [call = "", said = ""] = printed([
      { type: "tool_call", id: "1", name: "write", input: { text: "x".repeat(1_000) } },
      { type: "message", text: "\u001b[2J" },
    ]);
    expect(call.length).toBeLessThan(200);
    expect(call.endsWith("…")).toBe(true);
    expect(said).toBe("   0.01 s  says     ␛[2J");
  });

  it("wraps at the terminal's width, behind the label", () => {
    const timeline = new Timeline(0, false, 40);
    const text = plain(
      timeline.event({ type: "message", text: "one two three four five\n  six seven eight nine" }, 0),
    );
    expect(text.split("\n")).toEqual([
      "   0.00 s  says     one two three four",
      "                    five",
      "                      six seven eight",
      "                      nine",
      "",
    ]);
  });

  it("begins with what runs, as a person says it, and says how long a call took", () => {
    const timeline = new Timeline(0);
    const data = {
      runId: "bc9269d7-3c77-441c-85ea-56091ee3cb05",
      harness: "gemini",
      sandbox: "local",
      sessionId: "s",
    };
    const lines = [
      timeline.event({ type: "data", name: "run", data }, 0),
      timeline.event({ type: "tool_call", id: "1", name: "build" }, 0),
      timeline.event({ type: "tool_result", id: "1", output: "ok" }, 2_340),
    ];
    expect(plain(lines.join(""))).toBe(
      [
        "   0.00 s  runs     gemini in local · run bc9269d7 · session s",
        "   0.00 s  calls    build {}",
        "   2.34 s  got      build (2.34 s): ok",
        "",
      ].join("\n"),
    );
  });

  it("distinguishes a denied call from a failed one", () => {
    expect(
      printed([
        { type: "tool_result", id: "1", output: "no", isError: true, denied: true },
        { type: "tool_result", id: "2", output: "no", isError: true },
      ]).map((line) => line.slice(11, 18).trim()),
    ).toEqual(["denied", "failed"]);
  });

  it("names a tool once, and counts one token as one", () => {
    const output = "Tool 'book' failed: the platform could not be reached.";
    expect(
      printed([
        { type: "tool_call", id: "1", name: "book", input: {} },
        { type: "tool_result", id: "1", isError: true, output },
        { type: "interaction_response", id: "a", kind: "client_tool", payload: { toolName: "seat" } },
      ]),
    ).toEqual([
      "   0.00 s  calls    book {}",
      "   0.01 s  failed   book: the platform could not be reached.",
      "   0.02 s  answer   seat",
    ]);
    const result: RunResult = {
      ok: true,
      runId: "r",
      events: [],
      stopReason: "end_turn",
      usage: { input: 2_400, output: 1 },
    };
    expect(plain(new Timeline(0).result(result, 0))).toContain("end_turn · 2,400 tokens in, 1 token out");
  });

  it("ends a refusal with every gap and its fix", () => {
    const gap = {
      actor: "local",
      capability: "network.deny",
      reason: "no namespaces",
      fix: "use docker",
    } as const;
    const result: RunResult = {
      ok: false,
      runId: "r",
      events: [],
      error: "long",
      failure: { code: "boundary_refused", retryable: false, gaps: [gap] },
    };
    expect(plain(new Timeline(0).result(result, 0))).toContain(
      "local · network.deny: no namespaces: use docker",
    );
  });

  it("lists the parts of the request without effect", () => {
    const warnings = [{ path: "gatewayPolicy", message: "has no effect" }, { message: "nor has this" }];
    const result: RunResult = { ok: true, runId: "r", events: [], stopReason: "end_turn", warnings };
    expect(plain(new Timeline(0).result(result, 0)).split("\n").slice(1, 3)).toEqual([
      "   0.00 s  warns    gatewayPolicy: has no effect",
      "   0.00 s  warns    nor has this",
    ]);
  });

  const receipt: Receipt = {
    sandbox: "local",
    confinement: "confined",
    enforcement: "best_effort",
    required: ["network.deny", "process.contained", "secrets.hidden"],
    guarantees: [
      {
        capability: "network.deny",
        by: "local",
        how: "a jail reached no listener",
        basis: "attempted",
        provenAt: "2026-01-01T00:00:00Z",
      },
      {
        capability: "network.deny",
        by: "callback",
        how: "a refused host",
        basis: "attempted",
        provenAt: "2026-01-01T00:00:00Z",
      },
      {
        capability: "network.deny",
        by: "site-tool",
        how: "it says so",
        basis: "stated",
        provenAt: "2026-01-01T00:00:00Z",
      },
      {
        capability: "process.contained",
        by: "local",
        how: "a decoy",
        basis: "attempted",
        provenAt: "2026-01-01T00:00:00Z",
      },
    ],
    actors: [
      { kind: "sandbox", name: "local", site: "sandbox", assurance: "guaranteed", touches: [] },
      {
        kind: "sandbox",
        name: "docker",
        site: "sandbox",
        assurance: "guaranteed",
        touches: [],
        subjects: ["workspace.sources[0]", "outputs.git"],
      },
      { kind: "executor", name: "client", site: "caller", assurance: "outside", touches: [] },
    ],
    accepted: [],
    visibleCredentials: ["LOGIN"],
    credentials: [{ name: "KEY", hosts: ["api.example"], by: "route" }],
    evidence: { seccomp: 2 },
    decisions: { allowed: 2, refused: 1 },
    session: { id: "s", history: "new" },
  };
  const ended: RunResult = { ok: true, runId: "r", events: [], stopReason: "end_turn", receipt };
  const shown = (withEvidence: boolean) =>
    plain(new Timeline(0, withEvidence).result(ended, 0))
      .trimEnd()
      .split("\n")
      .map((line) => line.slice(11));

  it("shows a receipt with one short line for each capability", () => {
    expect(shown(false)).toEqual([
      "ends     end_turn",
      "receipt  local · confined · best_effort",
      "         proven   network.deny · local, callback",
      "         stated   network.deny · site-tool",
      "         proven   process.contained · local",
      "         gap      secrets.hidden, accepted",
      "         also in  docker: workspace.sources[0], outputs.git",
      "         outside  executor client, on the caller",
      "         hidden   KEY · route: api.example",
      "         visible  LOGIN, inside the sandbox",
      "                  connections: 2 allowed, 1 refused",
    ]);
  });

  it("leaves warnings about the host to doctor, and to the evidence", () => {
    const [guarantee] = receipt.guarantees;
    if (guarantee === undefined) throw new Error("no guarantee");
    const warned = { ...receipt, guarantees: [{ ...guarantee, warning: "an old bubblewrap" }] };
    const text = (withEvidence: boolean) =>
      new Timeline(0, withEvidence).result({ ...ended, receipt: warned }, 0);
    expect(text(false)).not.toContain("bubblewrap");
    expect(text(true)).toContain("an old bubblewrap");
  });

  it("shows the evidence of a receipt on request", () => {
    const lines = shown(true);
    expect(lines).toContain(
      "         proven   network.deny · callback, 2026-01-01T00:00:00Z: a refused host",
    );
    expect(lines).toContain("         seen     seccomp: 2");
  });
});
