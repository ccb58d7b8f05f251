import { compileSeccompFilter, seccompErrno } from "@ambit/backend-kit/system-call-filter";
import { describe, expect, test } from "vitest";
import { refusals } from "../../src/probe/system-calls.js";
import { interpret } from "../seccomp/interpreter.js";
import { filterParts } from "./jails/index.ts";

const audit = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const foreign = "calls of another architecture";

describe.each(["x64", "arm64"] as const)("the probe's system calls on %s", (architecture) => {
  const attempts = refusals(architecture);
  const answers = (filter: Buffer) =>
    attempts.map((attempt) => interpret(filter, { architecture: audit[architecture], ...attempt }));
  const whole = answers(compileSeccompFilter(architecture));

  test("are each refused by the filter, with the error that the probe expects", () => {
    expect(attempts.map(({ answer }) => seccompErrno.fail(-answer))).toEqual(whole);
  });

  test.each(filterParts(architecture).filter(({ name }) => name !== foreign))(
    "show that the filter lacks $name",
    ({ filter }) => {
      const seen = attempts.filter((_attempt, index) => answers(filter)[index] !== whole[index]);
      expect(seen.length).toBeGreaterThan(0);
    },
  );

  test("have unique names", () => {
    expect(new Set(attempts.map(({ name }) => name)).size).toBe(attempts.length);
  });
});
