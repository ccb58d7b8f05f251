import type { Goal } from "../../goal.js";
import { median, rotating, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

/** 1,000 files of 4 KiB and as many links, as packages of a project have. */
const setup = [
  "mkdir files links; head -c 4096 /dev/zero > files/0; for i in $(seq 1000); do cp files/0 files/$i; ln -s ../files/$i links/$i; done",
];
const closed = { network: "off", filesystem: "workspace" };
const asking = (environment?: object) => demoRequest("say hello", { sandboxPermission: closed, environment });

const bodies = {
  empty: asking(),
  warm: asking({ setup }),
  cold: asking({ setup, cache: "off" }),
} as const;
const sides = ["empty", "warm", "cold"] as const;

export const environment: Goal = {
  id: "E1",
  title: "run that starts from a prepared environment, beside one with an empty workspace",
  goal: "≤ 1,000 ms more",
  needs: [linux],
  run: async ({ pairs }) => {
    await using ambit = await startAmbit();
    const measured = await rotating(sides, (side) => timed(() => run(ambit.caller, bodies[side])), {
      rounds: pairs(10),
    });
    const of = (side: (typeof sides)[number]) => measured.get(side) ?? [];
    const compared = (side: "warm" | "cold", how: (value: number, empty: number) => number) =>
      of(side).map((value, index) => how(value, of("empty")[index] ?? Number.NaN));
    const note = sides.map((side) => `${side} ${Math.round(median(of(side)))} ms`).join(", ");
    return [
      {
        what: "from the cache, more than an empty workspace",
        unit: "ms",
        values: compared("warm", (value, empty) => value - empty),
        limit: { atMost: 1_000 },
        note,
      },
      {
        what: "from the cache ÷ an empty workspace",
        unit: "×",
        values: compared("warm", (value, empty) => value / empty),
      },
      {
        what: "prepared by the run ÷ an empty workspace",
        unit: "×",
        values: compared("cold", (value, empty) => value / empty),
      },
    ];
  },
};
