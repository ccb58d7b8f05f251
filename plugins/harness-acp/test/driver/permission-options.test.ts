import { describe, expect, it } from "vitest";
import { allowOption, denyOutcome } from "../../src/driver/questions.js";

const option = (optionId: string, kind: string, name = optionId) => ({ optionId, kind, name });

describe("permission options", () => {
  it.each([
    { what: "all four", options: [option("aa", "allow_always"), option("a", "allow_once")], allow: "a" },
    { what: "always only", options: [option("aa", "allow_always")], allow: undefined },
    { what: "none", options: [], allow: undefined },
    { what: "no list", options: "nonsense", allow: undefined },
    {
      what: "every option called allow_once, the denial first (Pi)",
      options: [option("1", "allow_once", "Block"), option("2", "allow_once", "Allow")],
      allow: "2",
    },
  ])("allow: $what", ({ options, allow }) => {
    expect(allowOption(options)).toBe(allow);
  });

  it.each([
    { what: "reject_once", options: [option("a", "allow_once"), option("r", "reject_once")], deny: "r" },
    {
      what: "one that continues the turn before one that ends it",
      options: [option("cancel", "reject_once", "Cancel"), option("r", "reject_once", "Reject")],
      deny: "r",
    },
    {
      what: "one that ends the turn if there is no other",
      options: [option("abort", "reject_once")],
      deny: "abort",
    },
    {
      what: "every option called allow_once (Pi)",
      options: [option("1", "allow_once", "Allow"), option("2", "allow_once", "No")],
      deny: "2",
    },
    {
      what: "reject_always only: it would bind later calls",
      options: [option("ra", "reject_always")],
      deny: undefined,
    },
    { what: "none", options: [], deny: undefined },
  ])("deny: $what", ({ options, deny }) => {
    const expected = deny === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: deny };
    expect(denyOutcome(options)).toEqual(expected);
  });
});
