import type { Goal } from "../../goal.js";
import { interleaved, mediansOf, timed } from "../../measure.js";
import { confinement, loopbackName, ownLoopback } from "../../needs.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { startBareServer } from "../../subjects/server/bare-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { runWorking } from "../../subjects/server/runs.js";

/** Confined, with one listed destination and its addresses, and a writable workspace. */
const boundary = (allowlist: readonly string[]) => ({
  sandboxPermission: { network: { mode: "allowlist", allowlist }, filesystem: "workspace" },
});

/** A turn like those of agents, but shorter: a second of commands, files and model requests. */
function turnOf(url: string): string {
  const round = [`fetch ${url}`, "run sleep 0.15", "write notes.txt something", "read notes.txt"];
  return Array(6).fill(round).flat().join("\n");
}

export const jail: Goal = {
  id: "G16",
  title: "jail and egress proxy around an agent ÷ plain",
  goal: "≤ 1.03",
  needs: [confinement, loopbackName],
  async run({ pairs }) {
    await using ambit = await startAmbit({ unconfined: "prefer" });
    // By name: a literal loopback address is the jail's own, and doesn't pass the proxy.
    const own = await ownLoopback();
    if (own === undefined) throw new Error("this machine's own name no longer leads to loopback");
    await using model = await startBareServer(own.address);
    const { port } = new URL(model.caller.url);
    const url = `http://${own.name}:${port}`;
    const confined = boundary([`${own.name}:${port}`, `${own.address}:${port}`]);
    const compare = (script: string, calls: number, connections: number) =>
      interleaved(
        () => timed(() => runWorking(ambit.caller, demoRequest(script, confined), calls, connections)),
        () => timed(() => runWorking(ambit.caller, demoRequest(script), calls, 0)),
        { pairs: pairs(20) },
      );
    const turn = await compare(turnOf(url), 24, 1);
    const empty = await compare("say hello", 0, 0);
    const fetches = await compare(Array(100).fill(`fetch ${url}`).join("\n"), 100, 1);
    return [
      {
        what: "a turn of a second: 6 × (request to its host, command, write, read)",
        unit: "×",
        values: turn.ratios,
        limit: { atMost: 1.03 },
        note: mediansOf(turn, "ms"),
      },
      { what: "a turn that says one word", unit: "×", values: empty.ratios, note: mediansOf(empty, "ms") },
      {
        what: "a turn of 100 requests through relay and proxy, nothing else",
        unit: "×",
        values: fetches.ratios,
        note: mediansOf(fetches, "ms"),
      },
    ];
  },
};
