import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { demoAgentEntry } from "@ambit/agent-demo";
import { type TemporaryFolder, temporaryFolder } from "../machine/temporary-folder.js";
import { installPeer, type Peer } from "./install-peer.js";

const execute = promisify(execFile);

const runTimeoutMs = 30_000;

const acpx: Peer = { name: "acpx", version: "0.19.1", license: "MIT", entry: "dist/cli.js" };

/** The command line of acpx, which starts the demo agent for one prompt. It confines nothing. */
export interface Acpx extends AsyncDisposable {
  run(script: string): Promise<void>;
}

/** @throws Error when it can't be installed */
export async function openAcpx(): Promise<Acpx> {
  const entry = fileURLToPath(await installPeer(acpx));
  const home: TemporaryFolder = await temporaryFolder();
  const agent = `${process.execPath} ${demoAgentEntry}`;
  const argv = [entry, "--agent", agent, "--approve-all", "--format", "quiet", "exec"];
  return {
    run: async (script) => {
      const env = { HOME: home.path, PATH: process.env.PATH ?? "" };
      const options = { cwd: home.path, env, timeout: runTimeoutMs };
      const running = execute(process.execPath, [...argv, script], options);
      // It waits for a prompt from a pipe.
      running.child.stdin?.end();
      const { stdout } = await running;
      if (stdout.trim() === "") throw new Error("acpx printed nothing");
    },
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}
