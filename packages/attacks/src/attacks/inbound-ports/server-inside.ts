import type { Sandbox } from "@ambit/core/plugin";
import { endProcessesWith } from "../../decoys/host-processes.js";
import { freshNonce } from "../../decoys/nonce.js";
import { commandOf, textOf } from "../../programs/run-program.js";
import { waitForLine } from "../../programs/wait-for.js";
import type { Stage } from "../attack.js";
import { serverProgram } from "./server-program.js";

/** A server of the kit in a sandbox, on two ports of its loopback. */
export interface ServerInside {
  readonly listed: number;
  readonly unlisted: number;
  /** What it answers. */
  readonly answer: string;
}

interface ServerOptions {
  /** Default: something that nothing else says. */
  readonly answer?: string;
  /** A port that it must not use. */
  readonly not?: number;
  /** Whether it tries to outlive its sandbox. Default false. */
  readonly detached?: boolean;
}

/** Works with a server inside, and ends it. @throws Error if it doesn't start */
export async function withServer<Result>(
  { spec, decoys }: Pick<Stage, "spec" | "decoys">,
  sandbox: Sandbox,
  work: (server: ServerInside) => Promise<Result>,
  { answer = freshNonce(), not, detached = false }: ServerOptions = {},
): Promise<Result> {
  const mark = freshNonce();
  const ports = decoys.freePorts.filter((port) => port !== not);
  const parameters = { mark, ports, listed: spec.boundary.inbound ?? [], detached };
  const env = { DECOY_ANSWER: answer };
  const started = await sandbox.spawn(commandOf(serverProgram, parameters, { env, role: "agent" }));
  try {
    const line = await waitForLine(started.stdout, "LISTENS");
    const [listed, unlisted] = (line ?? "").split(" ").slice(1).map(Number);
    if (listed === undefined || unlisted === undefined)
      throw new Error(`a server inside ended at once: ${(await textOf(started.stderr)).slice(-200)}`);
    return await work({ listed, unlisted, answer });
  } finally {
    await started.kill();
    endProcessesWith(mark);
  }
}
