// needs: jail
import type { RunResult } from "@ambit/core";
import { expect, it } from "vitest";
import { bodyOf, demo, serve } from "../support/ambit.js";

const fill = "run head -c 400000000 /dev/zero | tail -c 400000000 | wc -c";

it("tells of an agent's own command that was killed for the session's memory", {
  timeout: 120_000,
}, async (context) => {
  if (process.getuid?.() !== 0) context.skip("host: limits need cgroups, which here only root can make");
  const server = await serve();
  const run = async (memoryMb: number, line: string) => {
    const sandboxPermission = { network: "off", resources: { memoryMb } };
    return bodyOf<RunResult>(
      await server.post("/run", { ...demo(line), sandboxPermission, permissions: { default: "allow" } }),
    );
  };
  const killed = await run(300, fill);
  expect(killed.warnings).toEqual([
    {
      path: "sandboxPermission.resources.memoryMb",
      message: expect.stringMatching(/^A process was killed .* limit of 300 MiB \(resources\.memoryMb\)/),
    },
  ]);
  expect((await run(300, "run echo small")).warnings ?? []).toEqual([]);
  expect((await run(1000, fill)).warnings ?? []).toEqual([]);
});
