import { HttpCaller } from "../http.js";
import { count, type LoadAttack, repeatedly } from "./attack.js";
import { distinctKeys, longText, rows } from "./payloads.js";

const megabyte = 1_048_576;
const most = 16 * megabyte;

/** Bodies as large as one may be. Most are refused, and each must be read first. */
const bodies: readonly string[] = [
  `[${"[],".repeat(Math.floor(most / 3) - 2)}[]]`,
  `{"messages":${"[{}".repeat(8_000)}`,
  distinctKeys(99_000),
  JSON.stringify({
    harness: "demo",
    messages: [{ role: "user", content: "x" }],
    telemetry: JSON.parse(rows(90_000)),
  }),
  // Runs: each message is valid, and all of them are the conversation's history.
  JSON.stringify({
    harness: "demo",
    messages: Array.from({ length: 9_000 }, () => ({ role: "user", content: longText(1_500) })),
  }),
  JSON.stringify({
    harness: "demo",
    messages: [{ role: "user", content: `say ${"x".repeat(15 * megabyte)}` }],
  }),
];

export const largeBodies: LoadAttack = {
  run: async (target, tally, signal) => {
    const caller = new HttpCaller(target.url, target.token);
    let turn = 0;
    const step = async () => {
      turn += 1;
      await caller.post("/plan", bodies[turn % bodies.length] ?? "");
      count(tally, "bodies");
    };
    await repeatedly(8, step, tally, signal);
    caller.close();
  },
};
