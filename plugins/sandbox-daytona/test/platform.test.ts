import { spawnSync } from "node:child_process";
import { SandboxFailed } from "@ambit/core/plugin";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  asSandboxFailed,
  isPassing,
  type PlatformErrorFields,
  ServiceFailure,
  serviceFailure,
} from "../src/platform/failure.js";
import { withRetries } from "../src/platform/retries.ts";
import { shellLine } from "../src/platform/shell-line.js";

const key = "dtn_the-key-of-the-test";

describe("a shell line", () => {
  const argument = fc
    .string({ unit: "binary" })
    .filter((text) => !["\0", "\n", "\r"].some((each) => text.includes(each)));

  it("passes exactly these arguments to a shell", () => {
    fc.assert(
      fc.property(fc.array(argument, { minLength: 1, maxLength: 5 }), (args) => {
        const line = shellLine(["printf", "%s\\0", ...args]);
        const { stdout } = spawnSync("/bin/sh", ["-c", line], { encoding: "utf8" });
        expect(stdout).toBe(args.map((text) => `${text}\0`).join(""));
      }),
    );
  });

  it.each(["$(id)", "`id`", "a'b", "a\\'b", "", "~", "*", "a b", "!x", "-n", "=x", "#", "&&"])(
    "keeps %j",
    (text) => {
      const { stdout } = spawnSync("/bin/sh", ["-c", shellLine(["printf", "%s", text])], {
        encoding: "utf8",
      });
      expect(stdout).toBe(text);
    },
  );

  it.each(["a\0b", "a\nb", "a\rb"])("refuses %j", (text) => {
    expect(() => shellLine(["echo", text])).toThrow(TypeError);
  });
});

describe("Daytona's error responses", () => {
  it.each<[Partial<PlatformErrorFields>, string, RegExp]>([
    [
      { statusCode: 401, message: "Unauthorized" },
      "unauthorized",
      /401, Unauthorized\): the key is wrong or has expired/,
    ],
    [{ statusCode: 403, message: "Forbidden resource" }, "forbidden", /give the key the permissions/],
    [
      {
        statusCode: 400,
        message: "Network access is restricted and cannot be overridden at the sandbox level.",
      },
      "restricted",
      /may not restrict a sandbox's network/,
    ],
    [{ statusCode: 403, message: "Total CPU quota exceeded (10)" }, "quota", /delete sandboxes, or raise/],
    [{ statusCode: 404, message: "Snapshot x not found" }, "missing", /check sandbox-daytona's snapshot/],
    [{ statusCode: 409, message: "exists" }, "conflict", /set another namePrefix/],
    [{ statusCode: 410, message: "SESSION_ENDED" }, "gone", /start a new run/],
    [{ statusCode: 422, message: "wrong" }, "invalid", /check sandbox-daytona's configuration/],
    [
      {
        statusCode: 429,
        message: "Too many",
        headers: { "retry-after-sandbox-create": "7", "retry-after": "3" },
      },
      "throttled",
      /try again in 7 s/,
    ],
    [{ statusCode: 408, message: "slow" }, "timeout", /try again later/],
    [{ statusCode: 502, message: "bad gateway" }, "unavailable", /try again later/],
    [
      { name: "DaytonaConnectionError", message: "connect ECONNREFUSED" },
      "unreachable",
      /check sandbox-daytona's apiUrl/,
    ],
    [
      { message: "Sandbox x failed to start with status: build_failed, error reason: no such image" },
      "never_started",
      /createTimeoutMs/,
    ],
  ])("%j", (fields, kind, text) => {
    const failure = serviceFailure({ name: "DaytonaError", message: "", ...fields }, key);
    expect(failure.kind).toBe(kind);
    expect(asSandboxFailed(failure, "creating a sandbox").message).toMatch(text);
  });

  it("never show the key", () => {
    const failure = asSandboxFailed(
      serviceFailure({ name: "DaytonaError", message: `bad token ${key}`, statusCode: 401 }, key),
      "a look",
    );
    const shown: string[] = [];
    for (let error: unknown = failure; error instanceof Error; error = error.cause)
      shown.push(String(error.stack));
    expect(shown.join()).not.toContain(key);
    expect(shown.length).toBeGreaterThan(1);
  });
});

describe("patience", () => {
  const failing = (times: number, failure: Error) => {
    let calls = 0;
    const call = async () => {
      calls += 1;
      if (calls <= times) throw failure;
      return calls;
    };
    return { call, calls: () => calls };
  };

  it("retries temporary failures", async () => {
    const { call } = failing(2, new ServiceFailure("unavailable", "", 503));
    expect(await withRetries(call, { retries: 3, limitMs: 10_000 })).toBe(3);
  });

  it.each(["unauthorized", "quota", "restricted", "conflict", "missing"] as const)(
    "leaves %s alone",
    async (kind) => {
      const { call, calls } = failing(9, new ServiceFailure(kind, ""));
      await expect(withRetries(call, { retries: 3, limitMs: 10_000 })).rejects.toMatchObject({ kind });
      expect(calls()).toBe(1);
      expect(isPassing(new ServiceFailure(kind, ""))).toBe(false);
    },
  );

  it("doesn't wait longer than its limit", async () => {
    const { call, calls } = failing(9, new ServiceFailure("throttled", "", 429, 60_000));
    await expect(withRetries(call, { retries: 3, limitMs: 1_000 })).rejects.toMatchObject({
      kind: "throttled",
    });
    expect(calls()).toBe(1);
  });

  it("makes no try that would fail for lack of time", async () => {
    const { call, calls } = failing(9, new ServiceFailure("unavailable", "what is wrong", 503));
    await expect(withRetries(call, { retries: 20, limitMs: 1_000 })).rejects.toThrow("what is wrong");
    expect(calls()).toBe(1);
  });

  it("reports the failure before the time limit", async () => {
    let calls = 0;
    const slow = async () => {
      calls += 1;
      if (calls === 1) throw new ServiceFailure("unavailable", "what is wrong", 503);
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      throw new ServiceFailure("timeout", "the time was over");
    };
    await expect(withRetries(slow, { retries: 20, limitMs: 2_000 })).rejects.toThrow("what is wrong");
  });

  it("ends its wait when it is aborted", async () => {
    const stop = new AbortController();
    const { call } = failing(9, new ServiceFailure("throttled", "", 429, 60_000));
    const waiting = withRetries(call, { retries: 3, limitMs: 600_000, signal: stop.signal });
    setTimeout(() => stop.abort(new SandboxFailed("told")), 20);
    await expect(waiting).rejects.toThrow();
  });
});
