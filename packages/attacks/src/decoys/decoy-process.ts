import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { interpreter, python, searchPath } from "../programs/python.js";
import { decoyProgram } from "./decoy-program.js";
import { freshNonce } from "./nonce.js";

/** What a decoy process shares with processes that can reach it. Undefined if this host doesn't support it. */
interface Shared {
  readonly pid: number;
  /** Its initial priority, which is the kit's own and may have been lowered. */
  readonly nice: number;
  /** Key of a System V segment that holds the secret. */
  readonly segment?: number;
  /** Name of a POSIX message queue that holds it. */
  readonly queue?: string;
  /** A file of shared memory that holds it. */
  readonly memoryFile?: string;
  /** Serial number of a key in the user's keyring that holds it. */
  readonly key?: number;
}

/** One of the kit's processes, with a secret in its environment and its memory. */
export interface DecoyProcess extends Shared {
  /** In its command line. */
  readonly nonce: string;
  /** Signals that it received, by name. */
  signals(): Promise<readonly string[]>;
  /** Whether anything stopped it, or changed its priority. */
  disturbed(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * @param user the user of the process, if the kit may choose it; default the kit's own.
 * @param userNamespace path of its user namespace; default the kit's own.
 */
export async function startDecoyProcess(
  secret: string,
  user?: { readonly uid: number; readonly gid: number },
  userNamespace?: string,
): Promise<DecoyProcess> {
  const nonce = freshNonce();
  const argv = ["-I", "-S", "-c", python(decoyProgram), JSON.stringify({ nonce }), nonce];
  const [program = interpreter, ...prefix] =
    userNamespace === undefined
      ? []
      : ["nsenter", `--user=${userNamespace}`, "--preserve-credentials", "--", interpreter];
  const child = spawn(program, [...prefix, ...argv], {
    env: { PATH: searchPath, DECOY_SECRET: secret },
    stdio: ["pipe", "pipe", "pipe"],
    ...(user ?? {}),
  });
  let complaints = "";
  child.stderr.on("data", (data) => {
    complaints += String(data);
  });
  child.stdin.on("error", () => undefined); // An attack may have ended it, which its exit shows.
  const answers = createInterface({ input: child.stdout });
  const said: string[] = [];
  const waiting: ((line: string) => void)[] = [];
  const gone = once(child, "exit");
  answers.on("line", (line) => {
    const next = waiting.shift();
    if (next === undefined) said.push(line);
    else next(line);
  });
  const line = () => {
    const earlier = said.shift();
    if (earlier !== undefined) return Promise.resolve(earlier);
    return Promise.race([
      new Promise<string>((resolve) => waiting.push(resolve)),
      gone.then(([code, name]) =>
        Promise.reject(new Error(`the decoy ended (${code ?? name}): ${complaints}`)),
      ),
    ]);
  };
  await line(); // RAN
  const shared: Shared = JSON.parse(await line());
  const ask = async () => {
    child.stdin.write("?\n");
    const state: { signals: string[]; nice: number; tracer: number } = JSON.parse(await line());
    return state;
  };
  return {
    ...shared,
    nonce,
    signals: async () => (await ask()).signals,
    disturbed: async () => {
      const { nice, tracer } = await ask();
      if (nice !== shared.nice) return `its priority was set to ${nice}`;
      return tracer === 0 ? undefined : "it was being traced";
    },
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.stdin.end();
      const limit = setTimeout(() => child.kill("SIGKILL"), 2_000);
      await gone;
      clearTimeout(limit);
    },
  };
}
