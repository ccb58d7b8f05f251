// needs: python
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const dist = new URL("../dist/", import.meta.url);
const module = (name: string) => JSON.stringify(new URL(name, dist).href);

const program = `
  import { setPriority } from "node:os";
  import { startDecoyProcess } from ${module("decoys/decoy-process.js")};
  const decoy = await startDecoyProcess("ambit-decoy-00000000000000000000000000000000");
  const seen = [(await decoy.disturbed()) ?? "nothing"];
  setPriority(decoy.pid, 19);
  seen.push((await decoy.disturbed()) ?? "nothing");
  await decoy.close();
  console.log(JSON.stringify(seen));`;

it.each([[0], [10]])(
  "distinguishes a changed priority from the one it was started with (nice %i)",
  async (nice) => {
    const argv = ["-n", String(nice), process.execPath, "--input-type=module", "-e", program];
    const { stdout } = await promisify(execFile)("nice", argv);
    expect(JSON.parse(stdout)).toEqual(["nothing", "its priority was set to 19"]);
  },
);
