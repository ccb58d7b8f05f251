import { defineExecutor, type ToolOutcome } from "@ambit/core/plugin";
import { calls } from "@ambit/fakes/harness";
import { expect, it } from "vitest";
import { maxOutputBytes, shortened } from "../../../src/call/run-tools.js";
import { createWorld } from "../../fakes/world.js";

it.each([
  ["ASCII", "a".repeat(maxOutputBytes + 1)],
  ["two bytes", `x${"é".repeat(maxOutputBytes)}`],
  ["three bytes", `xy${"語".repeat(maxOutputBytes)}`],
  ["four bytes", `xyz${"😀".repeat(maxOutputBytes)}`],
])("a long text is cut at a character, within the limit, and says so: %s", (_what, text) => {
  for (const limit of [1_000, 1_001, 1_002, 1_003]) {
    const cut = shortened(text, limit);
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(limit);
    expect(Buffer.byteLength(cut)).toBeGreaterThan(limit - 8);
    expect(cut).not.toContain("\ufffd");
    const [kept = "", omitted] = cut.split(/\n\n\[… (\d+) bytes omitted\]\n/);
    expect(text.startsWith(kept)).toBe(true);
    expect(Buffer.byteLength(kept) + Number(omitted)).toBe(Buffer.byteLength(text));
    expect(cut).toContain("Narrow your query");
  }
});

it("a text at the limit isn't cut", () => {
  const text = "é".repeat(maxOutputBytes / 2);
  expect(shortened(text)).toBe(text);
  expect(shortened(`${text}a`)).not.toBe(`${text}a`);
});

it.each<[string, ToolOutcome["status"]]>([
  ["a result", "completed"],
  ["a failure", "failed"],
])("%s of any executor reaches the model cut, and its data whole", async (_what, status) => {
  const long = "x".repeat(maxOutputBytes * 2);
  const execute = async (): Promise<ToolOutcome> =>
    status === "completed" ? { status, output: long, data: long } : { status: "failed", output: long };
  const world = await createWorld({
    executors: [defineExecutor({ kind: "long", site: "runner", execute })],
    script: calls("read"),
  });
  const { events } = await world.run({ customTools: [{ kind: "long", name: "read", permission: "allow" }] });
  const result = events.find((event) => event.type === "tool_result");
  expect(result).toMatchObject({ output: expect.stringContaining("Narrow your query") });
  expect(Buffer.byteLength(String(result?.output))).toBe(maxOutputBytes);
  expect(result?.data).toBe(status === "completed" ? long : undefined);
});
