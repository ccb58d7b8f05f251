import { randomInt, randomUUID } from "node:crypto";
import type { Sandbox } from "@ambit/core/plugin";
import type { Attempts } from "../../inside/attempts.js";
import { tryInside } from "../../inside/look.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import { numberOf, resultsIn, systemCallProgram } from "../../system-calls/index.js";
import type { StandardBench, StandardTrial } from "../bench.js";

const createForAll = 0o1666n;
const remove = 0n;
const bytes = 4_096n;

/** What one sandbox puts where processes of one host share memory, another one doesn't find, as the same user. */
export const sharedMemoryTrial: StandardTrial = {
  shows: ["process.contained"],
  async run(bench) {
    const [closed, other] = await Promise.all([bench.closed(), bench.unlimited()]);
    const { machine } = await bench.kernel();
    const [shmget, shmctl] = [numberOf("shmget", machine), numberOf("shmctl", machine)];
    const key = BigInt(0x4d00_0000 + randomInt(0x100_0000));
    const path = `/dev/shm/ambit-probe-${randomUUID()}`;
    const made = await look(bench, closed, [shmget, key, bytes, createForAll], {
      file: { try: "write", path },
    });
    expectConclusive(made.file !== null || made.result >= 0, "nothing can be put into shared memory");
    try {
      const seen = await look(bench, other, [shmget, key, 0n, 0n], { file: { try: "read", path } });
      expectThat(made.result < 0 || seen.result < 0, "another sandbox's memory segment is found (System V)");
      expectThat(made.file === null || seen.file === null, "another sandbox's file in /dev/shm is found");
    } finally {
      // On a host that shares them, they would outlive their sandbox.
      await look(bench, closed, [shmctl, BigInt(made.result), remove, 0n], { file: { try: "remove", path } });
    }
    const what = [
      made.result >= 0 ? "a memory segment (System V)" : "",
      made.file === null ? "" : "a file in /dev/shm",
    ];
    return {
      "process.contained": `${what.filter((one) => one !== "").join(" and ")} of one sandbox wasn't found in another, by the same user`,
    };
  },
};

/** One system call and one attempt, as an agent: agents of different sandboxes may have the same user. */
async function look(
  bench: StandardBench,
  sandbox: Sandbox,
  [number, ...given]: readonly [number, ...bigint[]],
  attempts: Attempts,
): Promise<{ readonly result: number; readonly file: string | null }> {
  const content = systemCallProgram((await bench.kernel()).machine, [{ number, arguments: given }]);
  const path = `${sandbox.workspace}/ambit-shared-memory-${number}`;
  await sandbox.writeFiles([{ path, content, executable: true }]);
  const { run, file } = await tryInside(
    sandbox,
    bench,
    { ...attempts, run: { try: "run", path } },
    { role: "agent" },
  );
  const [, output = ""] = run?.split(" ") ?? [];
  return { result: resultsIn(Buffer.from(output, "base64"))[0] ?? -1, file: file ?? null };
}
