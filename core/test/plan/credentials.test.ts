import { harness, sandbox } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import type { HiddenCredential, SandboxBackend } from "../../src/plugin/index.js";
import { full, gapsIn, planned } from "./planning.js";

const token = { name: "TOKEN", value: "a-secret-value", hosts: ["git.example.com"], as: "bearer" };
const body = { credentials: [token] };
const hiding =
  (answer: ReturnType<NonNullable<SandboxBackend["hides"]>>, seen: HiddenCredential[] = []) =>
  (credential: HiddenCredential) => {
    seen.push(credential);
    return answer;
  };

describe("the request's own credentials", () => {
  test("are passed to a sandbox that keeps them outside, whatever else is visible", () => {
    const rows = {
      sandboxes: [sandbox({ ...full, hides: hiding(true) })],
      harnesses: [harness({ visible: ["KEY"] })],
    };
    const plan = planned(body, rows);
    expect(plan).toMatchObject({ accepted: true, hidden: [{ ...token, access: "write" }] });
  });

  test("are a gap, with the sandbox's own fix, if it can't keep them outside", () => {
    const answer = { reason: "git.example.com:443 isn't on the allowlist", fix: "list it" };
    const plan = planned(body, { sandboxes: [sandbox({ ...full, hides: hiding(answer) })] });
    expect(gapsIn(plan)).toEqual(["full secrets.hidden TOKEN"]);
    expect(plan).toMatchObject({
      gaps: [{ reason: expect.stringContaining(answer.reason), fix: "list it" }],
    });
  });

  test("are a gap in a sandbox that can't keep credentials outside, or doesn't prove it", () => {
    expect(gapsIn(planned(body, { sandboxes: [sandbox(full)] }))).toEqual(["full secrets.hidden TOKEN"]);
    const unproven = sandbox({ ...full, proven: [], hides: hiding(true) });
    expect(gapsIn(planned(body, { sandboxes: [unproven] }))).toEqual(["full secrets.hidden TOKEN"]);
    const best = { ...body, sandboxPermission: { enforcement: "best_effort" } };
    expect(planned(best, { sandboxes: [unproven] }).accepted).toBe(false);
  });

  test("select the first sandbox that keeps them outside", () => {
    const rows = {
      sandboxes: [
        sandbox({ ...full, name: "first" }),
        sandbox({ ...full, name: "second", hides: hiding(true) }),
      ],
    };
    expect(planned(body, rows)).toMatchObject({ accepted: true, sandbox: { actor: { name: "second" } } });
  });
});
