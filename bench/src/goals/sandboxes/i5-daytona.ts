import type { Sandbox } from "@ambit/core/plugin";
import type { Goal, Measurement } from "../../goal.js";
import { interleaved, mediansOf, type Side, timed } from "../../measure.js";
import {
  type DaytonaPipes,
  loopbackDaytona,
  openDaytonaPipes,
} from "../../subjects/sandboxes/daytona-pipes.js";

const rounds = 20;
const MB = 2 ** 20;
const atMost = 1.2;
const line = `${"x".repeat(99)}\n`;
const path = { PATH: "/usr/bin:/bin" };

/** The bridge's additional cost over a platform's pipe: a session's command, through the official SDK. */
export const daytonaBridge: Goal = {
  id: "I5",
  title: "a process over the bridge ÷ as a session's command (loopback Daytona)",
  goal: "≤ 1.2 of the bare pipe",
  needs: [loopbackDaytona],
  async run({ pairs }) {
    const far = await openDaytonaPipes();
    try {
      const sandbox = await far.open();
      const against = async (what: string, subject: Side, floor: Side): Promise<Measurement> => {
        const measured = await interleaved(subject, floor, { pairs: pairs(8), warmUp: 1 });
        return {
          what,
          unit: "×",
          values: measured.ratios,
          limit: { atMost },
          note: mediansOf(measured, "ms"),
        };
      };
      return [
        await against("first output", bridged(sandbox, "echo here"), piped(far, "echo here", 5)),
        await against(
          `an echo of 100 bytes (${rounds} in sequence)`,
          () => bridgedEchoes(sandbox),
          () => pipedEchoes(far),
        ),
        await against("1 MB", bridged(sandbox, lines(MB)), piped(far, lines(MB), MB)),
        await against("5 MB", bridged(sandbox, lines(5 * MB)), piped(far, lines(5 * MB), 5 * MB)),
      ];
    } finally {
      await far.close();
    }
  },
};

const lines = (bytes: number) => `yes "some text, line after line" | head -c ${bytes}`;

const bridged = (sandbox: Sandbox, script: string) => () =>
  timed(async () => {
    const child = await sandbox.spawn({ argv: ["/bin/sh", "-c", script], env: path });
    for await (const _ of child.stdout);
  });

/** Until all output has arrived: the platform reports a command's end a second later. */
const piped = (far: DaytonaPipes, script: string, bytes: number) => async () => {
  const begun = performance.now();
  const pipe = await far.pipe(script);
  await pipe.received(bytes);
  const took = performance.now() - begun;
  await pipe.close();
  return took;
};

async function bridgedEchoes(sandbox: Sandbox): Promise<number> {
  const child = await sandbox.spawn({ argv: ["/bin/cat"], env: path });
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader();
  const echo = async () => {
    await writer.write(Buffer.from(line));
    for (let length = 0; length < line.length; ) length += (await reader.read()).value?.length ?? line.length;
  };
  await echo();
  const ms = await timed(async () => {
    for (let round = 0; round < rounds; round += 1) await echo();
  });
  await child.kill();
  return ms;
}

async function pipedEchoes(far: DaytonaPipes): Promise<number> {
  const pipe = await far.pipe("cat");
  let sent = 0;
  const echo = async () => {
    // The platform adds the line break.
    await pipe.write(line.slice(0, -1));
    sent += line.length;
    await pipe.received(sent);
  };
  await echo();
  const ms = await timed(async () => {
    for (let round = 0; round < rounds; round += 1) await echo();
  });
  await pipe.close();
  return ms;
}
