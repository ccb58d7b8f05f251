import { fileURLToPath } from "node:url";
import type { Goal } from "../../goal.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import { median, rotating, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import { dockerEngine, openEngine } from "../../subjects/sandboxes/docker.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

/** 6,000 files of 30 KiB: 180 MB, as packages of a project have. */
const setup = [
  "mkdir packages; head -c 30720 /dev/urandom > first; for i in $(seq 6000); do cp first packages/$i; done",
];
const closed = { network: "off", filesystem: "workspace" };
const asking = (sandbox: string, environment?: object) =>
  demoRequest("say hello", { sandbox, sandboxPermission: closed, environment });

const bodies = {
  empty: asking("layers"),
  layer: asking("layers", { setup }),
  copy: asking("copies", { setup }),
} as const;
const sides = ["empty", "layer", "copy"] as const;

export const environmentLayer: Goal = {
  id: "E2",
  title: "E1 in new containers (runc), with an environment of 180 MB that the engine keeps as a layer",
  goal: "≤ 1,000 ms more than an empty workspace",
  needs: [linux, dockerEngine],
  run: async ({ pairs }) => {
    await using engine = await openEngine();
    await using data = await temporaryFolder();
    const backend = (name: string, max: number) => ({
      use: fileURLToPath(import.meta.resolve("@ambit/sandbox-docker")),
      config: {
        name,
        engine: `unix://${engine.socket}`,
        image: engine.image,
        network: "none",
        deployment: `bench-${name}`,
        dataFolder: data.path,
        prewarm: 0,
        layers: { max },
      },
    });
    await using ambit = await startAmbit({ plugins: [backend("layers", 10), backend("copies", 0)] });
    for (const side of sides) await run(ambit.caller, bodies[side]);
    const measured = await rotating(sides, (side) => timed(() => run(ambit.caller, bodies[side])), {
      rounds: pairs(8),
    });
    const of = (side: (typeof sides)[number]) => measured.get(side) ?? [];
    const more = (side: "layer" | "copy") =>
      of(side).map((value, index) => value - (of("empty")[index] ?? Number.NaN));
    const note = sides.map((side) => `${side} ${Math.round(median(of(side)))} ms`).join(", ");
    return [
      {
        what: "from a layer, more than an empty workspace",
        unit: "ms",
        values: more("layer"),
        limit: { atMost: 1_000 },
        note,
      },
      { what: "from a copy, more than an empty workspace", unit: "ms", values: more("copy") },
    ];
  },
};
