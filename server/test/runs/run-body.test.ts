import { agenta } from "@ambit/compat-agenta";
import { describe, expect, it } from "vitest";
import { commandKey } from "../../src/http/runs/begin-run.js";

describe("the key of a command", () => {
  const keyOf = (controlCommandId: unknown) =>
    commandKey({ controlCommandId }, { kind: "operator" }, [agenta]);

  it("is the same for the same command, and another for another", () => {
    expect(keyOf("c".repeat(256))).toMatch(/^command:[0-9a-f]{64}$/);
    expect(keyOf("one")).toBe(keyOf("one"));
    expect(keyOf("one")).not.toBe(keyOf("two"));
  });

  it.each([["c".repeat(257)], [""], [1], [null], [undefined]])(
    "isn't made of what the request is refused for, which may be large: %j",
    (command) => {
      expect(keyOf(command)).toBeUndefined();
    },
  );
});
