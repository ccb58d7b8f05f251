import type { Goal } from "../../goal.js";
import { linesOf } from "../../http.js";
import { descendantsOf, pssMibOf } from "../../machine/processes.js";
import { pause } from "../../machine/program.js";
import { interleaved, mediansOf } from "../../measure.js";
import { linux } from "../../needs.js";
import { type AcpDirect, startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { type AmbitServer, startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";

const runs = 8;
const script = "say hello\nsleep 4000";

/** What a run adds to its agent's memory. */
export const memoryAtEight: Goal = {
  id: "G13",
  title: "PSS per concurrent run at 8 ÷ bare agent",
  goal: "≤ 1.03",
  needs: [linux],
  async run({ pairs }) {
    const measure = async (unconfined: "allow" | "prefer") => {
      await using ambit = await startAmbit({ unconfined });
      await using direct = startAcpDirect();
      return await interleaved(
        () => perRun(ambit),
        () => perBareAgent(direct),
        { pairs: Math.min(6, pairs(6)), warmUp: 1 },
      );
    };
    const plain = await measure("prefer");
    const confined = await measure("allow");
    return [
      {
        what: "the agent and the growth of the server, unconfined",
        unit: "×",
        values: plain.ratios,
        limit: { atMost: 1.03 },
        note: mediansOf(plain, "MiB"),
      },
      {
        what: "the same, each in its jail",
        unit: "×",
        values: confined.ratios,
        note: mediansOf(confined, "MiB"),
      },
    ];
  },
};

async function perRun({ caller, program }: AmbitServer): Promise<number> {
  const before = pssMibOf(program.pid);
  const started = Array.from({ length: runs }, async () => {
    const response = await caller.open("/run", demoRequest(script), "application/x-ndjson");
    const lines = linesOf(response);
    for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
      if (line.value.includes('"delta":"hello"')) break;
    }
    return response;
  });
  const responses = await Promise.all(started);
  const agents = descendantsOf(program.pid).reduce((sum, { pid }) => sum + pssMibOf(pid), 0);
  const grown = Math.max(0, pssMibOf(program.pid) - before);
  for (const response of responses) response.destroy();
  while (descendantsOf(program.pid).length > 0) await pause(20);
  return (agents + grown) / runs;
}

async function perBareAgent(direct: AcpDirect): Promise<number> {
  const names = Array.from({ length: runs }, (_, index) => `bare-${index}`);
  await Promise.all(names.map((name) => direct.open(name)));
  await Promise.all(names.map((name) => direct.prompt(name, "say hello")));
  const agents = descendantsOf(direct.program.pid).reduce((sum, { pid }) => sum + pssMibOf(pid), 0);
  await Promise.all(names.map((name) => direct.close(name)));
  return agents / runs;
}
