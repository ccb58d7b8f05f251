import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ambit, repository } from "./support/ambit.js";

const folder = join(repository, "test/golden");
const recorded = (prefix: string) =>
  readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(folder, name));

interface Checked {
  readonly request: string;
  readonly verdict: string;
  readonly reasons: readonly string[];
  readonly differences: readonly string[];
}

describe("ambit compat check", () => {
  it("plans each request that an SDK of either version sent, or refuses it by a key's name and reason", async () => {
    const { code, stdout } = await ambit([
      "compat",
      "check",
      "--json",
      ...recorded("reference-request-sdk-"),
    ]);
    expect(code).toBe(4);
    const checked: Checked[] = JSON.parse(stdout);
    const refused = checked.filter(({ verdict }) => verdict === "refused");
    expect(checked).toHaveLength(12);
    // A machine may lack agents.
    const reasonsOf = ({ reasons }: Checked) => reasons.filter((one) => !one.includes("isn't installed"));
    expect(refused.map(reasonsOf).filter((reasons) => reasons.length > 0)).toEqual([
      [expect.stringMatching(/^sandbox: unknown sandbox 'daytona'/)],
      [expect.stringMatching(/^modelConnection\.subscription\.login\.expires: expired at 2026-11-18T/)],
    ]);
    // What it would say to a credential in a message must not leak it.
    expect(stdout).not.toMatch(/example-github-token|example-gateway-credential|example-refresh-token/);
  });

  it("reads one request on each line, and says what differs", async () => {
    const request = { messages: [{ role: "user", content: "hi" }], harness: "demo", sessionId: "s" };
    const input = `${JSON.stringify(request)}\n${JSON.stringify({ ...request, sandbx: 1 })}\n`;
    const { code, stdout } = await ambit(["compat", "check", "-"], { input });
    expect(code).toBe(4);
    expect(stdout).toContain("-:1: runs\n");
    expect(stdout).toContain("differs  a session in use");
    expect(stdout).toMatch(/-:2: refused\n {2}refused {2}sandbx: .*sandbox/);
  });

  it("names a file that can't be read", async () => {
    const { code, stderr } = await ambit(["compat", "check", "/nowhere.json"]);
    expect(code).toBe(2);
    expect(stderr).toContain("/nowhere.json");
  });
});
