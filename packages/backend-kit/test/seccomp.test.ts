import { constants } from "node:os";
import { allowedCalls, syscallNames } from "@ambit/attacks/system-calls";
import { expect, it } from "vitest";
import { z } from "zod";
import { refusedByProfile, seccompProfile } from "../src/index.js";

const { syscalls, defaultAction } = z
  .object({
    defaultAction: z.string(),
    syscalls: z.array(
      z.object({ names: z.array(z.string()), action: z.string(), errnoRet: z.number().optional() }),
    ),
  })
  .parse(JSON.parse(seccompProfile));
const rulesOf = (call: string) => syscalls.filter(({ names }) => names.includes(call));

it.each(["clone3", "io_setup"])("a container's filter has no %s, so that libraries do without", (call) => {
  expect(defaultAction).toBe("SCMP_ACT_ERRNO");
  expect(rulesOf(call)).toEqual([
    { names: expect.anything(), action: "SCMP_ACT_ERRNO", errnoRet: constants.errno.ENOSYS },
  ]);
});

it("a probe of containers tries each call that may take what the host has once", () => {
  expect(refusedByProfile).toEqual(expect.arrayContaining(["io_setup", "io_uring_setup", "keyctl", "bpf"]));
  const allowed = new Set(allowedCalls.map(({ name }) => name));
  expect(refusedByProfile.filter((call) => allowed.has(call))).toEqual([]);
  expect(syscallNames).toContain("io_setup");
});
