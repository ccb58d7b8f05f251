import { describe, expect, it, test } from "vitest";
import { demoFailure, withoutBoundary } from "../../../scripts/demo-texts.mjs";

const failed = (message: string, rest: object = {}) => Object.assign(new Error(message), rest);

describe("where the demo has no boundary, it says why, what that means, and how to change it", () => {
  const gap = (reason: string, fix: string) => ({ error: "refused", failure: { gaps: [{ reason, fix }] } });
  test.each([
    [
      "a plain container",
      gap("bwrap: No permissions to create new namespace", "in Docker add --security-opt seccomp=unconfined"),
      /No permissions to create new namespace\n {2}Nothing keeps .+ To change that: in Docker add --security-opt/,
    ],
    [
      "no bubblewrap",
      gap("bubblewrap isn't installed", "apt install bubblewrap"),
      /bubblewrap isn't installed\n.+: apt install bubblewrap$/,
    ],
    [
      "a build that the session's user can't read",
      gap("the demo agent can't be read by a session's own user", "chmod -R go+rX /srv/ambit/agents/demo"),
      /can't be read .+\n.+: chmod -R go\+rX/,
    ],
    [
      "an issue",
      { error: "invalid", failure: { issues: [{ path: "customTools[1]", message: "python3 is missing" }] } },
      /customTools\[1\]: python3 is missing\n.+: npx ambit doctor$/,
    ],
    ["nothing known", { error: "something else", failure: {} }, /something else\n.+: npx ambit doctor$/],
  ])("%s", (_where, refusal, expected) => {
    const text = withoutBoundary(refusal);
    expect(text).toMatch(expected);
    expect(text.split("\n")).toHaveLength(2);
  });
});

describe("where the demo fails, it says so in one sentence with its fix", () => {
  test.each([
    [
      "a read-only folder",
      failed("EROFS: read-only file system, mkdir '/tmp/a'", { code: "EROFS" }),
      /set TMPDIR/,
    ],
    [
      "a home of another user",
      failed("EACCES: permission denied", { code: "EACCES" }),
      /let this user write there/,
    ],
    [
      "a proxy that doesn't answer",
      failed("fetch failed", { cause: failed("connect ECONNREFUSED 127.0.0.1:9", { code: "ECONNREFUSED" }) }),
      /fetch failed: connect ECONNREFUSED 127\.0\.0\.1:9\. To change that: unset HTTP_PROXY/,
    ],
    ["a full disk", failed("ENOSPC: no space left on device", { code: "ENOSPC" }), /free space/],
    ["what is no error", "a text", /^the demo failed: a text$/],
  ])("%s", (_where, error, expected) => {
    expect(demoFailure(error)).toMatch(expected);
    expect(demoFailure(error)).not.toMatch(/\n/);
  });

  it("shows no stack", () => {
    expect(demoFailure(failed("one\n    at two (three.js:1:1)"))).toBe("the demo failed: one");
  });
});
