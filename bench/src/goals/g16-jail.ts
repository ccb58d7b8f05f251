import type { Goal } from "../goal.js";
import { confinement } from "../machine/needs.js";
import { interleaved, mediansOf, timed } from "../measure.js";
import { startAmbit } from "../subjects/ambit-server.js";
import { startBareServer } from "../subjects/bare-server.js";
import { demoRequest } from "../subjects/requests.js";
import { run } from "../subjects/runs.js";

/** Confined with a list of one destination, the workspace writable, and limits of memory and processes. */
const boundary = (host: string) => ({
  sandboxPermission: { network: { mode: "allowlist", allowlist: [host] }, filesystem: "workspace" },
});

/** A turn as agents have them, but shorter: a second of commands, files and calls to its model. */
function turnOf(url: string): string {
  const round = [`fetch ${url}`, "run sleep 0.15", "write notes.txt something", "read notes.txt"];
  return Array(6).fill(round).flat().join("\n");
}

export const jail: Goal = {
  id: "G16",
  title: "jail and egress proxy around an agent ÷ plain",
  goal: "≤ 1.03",
  needs: [confinement],
  async run({ pairs }) {
    await using ambit = await startAmbit({ unconfined: "prefer" });
    await using model = await startBareServer();
    const { url } = model.caller;
    const confined = boundary(new URL(url).host);
    const compare = (script: string) =>
      interleaved(
        () => timed(() => run(ambit.caller, demoRequest(script, confined))),
        () => timed(() => run(ambit.caller, demoRequest(script))),
        { pairs: pairs(20) },
      );
    const turn = await compare(turnOf(url));
    const empty = await compare("say hello");
    const fetches = await compare(Array(100).fill(`fetch ${url}`).join("\n"));
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
