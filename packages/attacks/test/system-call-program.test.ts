import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import {
  foreignCallProgram,
  numberOf,
  resultsIn,
  type SeccompArchitecture,
  seccompArchitectures,
  systemCallProgram,
} from "../src/system-calls/index.js";

const execute = promisify(execFile);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-calls-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Debian's package `qemu-user` has the other machine's kernel interface. */
const emulators = { x64: "qemu-x86_64", arm64: "qemu-aarch64" };

async function run(architecture: SeccompArchitecture, program: Buffer, context: TestContext) {
  if (process.platform !== "linux") context.skip(`host: ${process.platform} runs no programs of Linux`);
  const path = join(folder, `${context.task.id}-${architecture}`);
  await writeFile(path, program, { mode: 0o755 });
  const argv = process.arch === architecture ? [path] : [emulators[architecture], path];
  const [command = path, ...args] = argv;
  const { stdout } = await execute(command, args, { encoding: "buffer" }).catch((error: unknown) => {
    if (Object(error).code !== "ENOENT") throw error;
    return context.skip(`host: no ${command}: apt-get install qemu-user`);
  });
  return resultsIn(stdout);
}

describe("the program that makes system calls", () => {
  it.for(seccompArchitectures)(
    "makes each with all its arguments, in order (%s)",
    async (architecture, context) => {
      const named = (name: string, ...values: bigint[]) => ({
        number: numberOf(name, architecture),
        arguments: values,
      });
      const mapping = (descriptor: bigint, offset: bigint) =>
        named("mmap", 0n, 4_096n, 1n, descriptor === -1n ? 0x22n : 2n, descriptor, offset);
      const results = await run(
        architecture,
        systemCallProgram(architecture, [
          named("getpid"),
          named("close", -1n),
          named("lseek", -1n, 0n, 0n),
          { number: numberOf("socket", architecture), arguments: [1n, 15n] },
          mapping(-1n, 0n),
          mapping(99n, 0n),
          mapping(-1n, 1n),
        ]),
        context,
      );
      const { EBADF, EINVAL } = constants.errno;
      expect(results.slice(1, 4)).toEqual([-EBADF, -EBADF, -EINVAL]);
      // The fifth argument is a closed descriptor, the sixth an offset between two pages.
      expect(results.slice(5)).toEqual([-EBADF, -EINVAL]);
      for (const index of [0, 4]) expect(results[index]).toBeGreaterThan(0);
    },
  );

  it("makes one of another architecture, where the machine has one", async (context) => {
    expect(foreignCallProgram("arm64")).toBeUndefined();
    const program = foreignCallProgram("x64");
    if (process.arch !== "x64") context.skip(`host: ${process.arch} has no such calls`);
    if (program === undefined) throw new Error("there is no program for x64");
    const [result = 0] = await run("x64", program, context);
    expect(result).toBeGreaterThan(0);
  });
});
