import { describe, expect, test } from "vitest";
import { failureCodeSchema, failureSchema } from "../../src/contract/index.js";
import {
  AmbitError,
  AtCapacity,
  BoundaryRefused,
  BudgetExceeded,
  CommandExecuted,
  gapLine,
  HarnessFailed,
  IdempotencyKeyReused,
  InteractionExpired,
  InternalError,
  isAmbitError,
  issueLine,
  ModelFailed,
  NotFound,
  OutputsFailed,
  PluginBrokeContract,
  PluginLoadFailed,
  RequestInvalid,
  RunCancelled,
  RunnerLost,
  RunTimedOut,
  SandboxFailed,
  SessionElsewhere,
  SessionInUse,
  SetupFailed,
  SnapshotFailed,
  SourceFailed,
  StoreFailed,
  toAmbitError,
  Unauthorized,
} from "../../src/errors.js";

const gap = {
  actor: "local",
  capability: "network.deny",
  reason: "bubblewrap can't create a user namespace here (EPERM)",
  fix: "allow unprivileged user namespaces, or run on docker",
} as const;
const issue = { path: "messages", message: "none" };

const catalogue: [error: AmbitError, code: string, status: number, retryable: boolean][] = [
  [new RequestInvalid([issue]), "request_invalid", 400, false],
  [new Unauthorized(), "unauthorized", 401, false],
  [new NotFound("no run"), "not_found", 404, false],
  [new BoundaryRefused([gap]), "boundary_refused", 422, false],
  [new AtCapacity("full"), "at_capacity", 429, true],
  [new SessionInUse("s"), "session_in_use", 429, true],
  [
    new CommandExecuted({ field: "commandId", id: "c" }, Promise.resolve(undefined)),
    "command_executed",
    409,
    false,
  ],
  [new PluginLoadFailed([{ plugin: "p", reason: "r", fix: "c" }]), "plugin_load_failed", 500, false],
  [new PluginBrokeContract("x"), "plugin_broke_contract", 500, false],
  [new SandboxFailed("x"), "sandbox_failed", 502, false],
  [new HarnessFailed("x"), "harness_failed", 502, false],
  [new ModelFailed("x"), "model_failed", 502, false],
  [new ModelFailed("x", { retryable: true }), "model_failed", 502, true],
  [new BudgetExceeded("x"), "budget_exceeded", 402, false],
  [new RunCancelled("x"), "run_cancelled", 499, true],
  [new RunCancelled("x", "caller"), "run_cancelled", 499, false],
  [new RunTimedOut("x"), "run_timed_out", 504, true],
  [new InternalError("x"), "internal", 500, false],
  [new RunnerLost(), "runner_lost", 502, true],
  [new StoreFailed("x"), "store_failed", 503, true],
  [new SetupFailed("x"), "setup_failed", 422, false],
  [new SnapshotFailed("x"), "snapshot_failed", 502, false],
  [new SourceFailed("x", "invalid"), "source_failed", 422, false],
  [new OutputsFailed("x"), "outputs_failed", 502, false],
  [new SessionElsewhere("s", "http://10.0.0.5:8765"), "session_elsewhere", 409, false],
  [new IdempotencyKeyReused("k"), "idempotency_key_reused", 422, false],
  [new InteractionExpired("i"), "interaction_expired", 410, false],
];

describe("the catalogue", () => {
  test.each(catalogue)("%s", (error, code, status, retryable) => {
    expect(error).toMatchObject({ code, status, retryable, name: error.constructor.name });
    expect(error.toFailure()).toMatchObject({ code, retryable });
    expect(failureSchema.safeParse(error.toFailure()).error).toBeUndefined();
    expect(isAmbitError(error)).toBe(true);
  });

  test("has a class for every wire code", () => {
    expect(new Set(catalogue.map(([, code]) => code))).toEqual(new Set(failureCodeSchema.options));
  });

  test("a refusal carries its gaps and its issues", () => {
    const refusal = new BoundaryRefused([gap], [issue]);
    expect(refusal.toFailure()).toEqual({
      code: "boundary_refused",
      retryable: false,
      gaps: [gap],
      issues: [issue],
    });
    expect(refusal.message).toContain(gapLine(gap));
    expect(new BoundaryRefused([gap]).toFailure()).not.toHaveProperty("issues");
  });
});

test("a gap in one line, as operators read it", () => {
  expect(gapLine(gap)).toBe(
    "local · network.deny: bubblewrap can't create a user namespace here (EPERM): allow unprivileged user namespaces, or run on docker",
  );
  expect(gapLine({ ...gap, subject: "look_up" })).toContain("local (look_up) · network.deny: ");
});

test("an issue in one line", () => {
  expect(issueLine(issue)).toBe("messages: none");
  expect(issueLine({ ...issue, path: "" })).toBe("none");
});

describe("any thrown value", () => {
  test.each([["a string"], [undefined], [null], [{ code: "harness_failed" }], [new TypeError("secret")]])(
    "%s becomes an internal error that keeps the cause and doesn't show it",
    (thrown) => {
      const error = toAmbitError(thrown);
      expect(error.code).toBe("internal");
      expect(error.cause).toBe(thrown);
      expect(error.message).not.toContain("secret");
      expect(JSON.stringify(error.toFailure())).not.toContain("secret");
    },
  );

  test("errors of the catalogue stay unchanged, including those of another copy of this package", () => {
    const own = new HarnessFailed("x");
    expect(toAmbitError(own)).toBe(own);
    const foreign = Object.assign(new Error("from a plugin's copy"), { "ambit.error": true });
    expect(isAmbitError(foreign)).toBe(true);
    expect(foreign instanceof AmbitError).toBe(false);
  });
});

test("an invalid request's issues quote no more than a part of it", () => {
  const long = "a".repeat(1_000_000);
  const { message, issues } = new RequestInvalid([
    { path: "harness", message: `unknown harness '${long}'` },
    { path: long, message: "is needed" },
  ]);
  expect(issues.map(({ path, message: text }) => [path.length, text.length])).toEqual([
    [7, 2_002],
    [2_002, 9],
  ]);
  expect(message.length).toBeLessThan(5_000);
});
