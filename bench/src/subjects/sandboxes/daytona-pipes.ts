import { randomUUID } from "node:crypto";
import type { Sandbox } from "@ambit/core/plugin";
import { startLoopbackDaytona, unavailableReason } from "@ambit/daytona-loopback";
import { configSchema, DaytonaSandbox } from "@ambit/sandbox-daytona";
import { Daytona } from "@daytona/sdk";
import type { Need } from "../../goal.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import { boundaryOf, silent } from "./confined.js";

/** A session's command, from the platform's own SDK. */
interface SessionPipe {
  /** One line, without the line break. */
  write(line: string): Promise<void>;
  /** Resolves when that many bytes of its output have arrived. */
  received(bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** A loopback Daytona with one sandbox for bare pipes, and one for each bridge. */
export interface DaytonaPipes {
  open(): Promise<Sandbox>;
  pipe(script: string): Promise<SessionPipe>;
  close(): Promise<void>;
}

/** Daytona has no boundary for paths. */
const noRules = { mode: "on", readable: [], writable: [], denied: [] } as const;

export const loopbackDaytona: Need = { missing: async () => unavailableReason() };

export async function openDaytonaPipes(): Promise<DaytonaPipes> {
  const folder = await temporaryFolder();
  const daytona = await startLoopbackDaytona({ snapshots: { root: { user: "root" } }, startDelayMs: 0 });
  const { apiKey, apiUrl } = daytona;
  const sdk = new Daytona({ apiKey, apiUrl, target: "us" });
  const bare = await sdk.create({ snapshot: "root" });
  const config = configSchema.parse({ apiKey, apiUrl, snapshot: "root", dataFolder: folder.path });
  const backend = new DaytonaSandbox(config);
  const opened = new Set<Sandbox>();
  return {
    open: async () => {
      const spec = {
        id: randomUUID(),
        boundary: { ...boundaryOf({ network: "shared", limited: false }), filesystem: noRules },
        required: [],
        requiredPaths: [],
        onDecision: () => undefined,
        log: silent,
      };
      const sandbox = await backend.open(spec, {
        signal: new AbortController().signal,
        defer: () => undefined,
      });
      opened.add(sandbox);
      return sandbox;
    },
    pipe: async (script) => {
      const session = randomUUID();
      await bare.process.createSession(session);
      const { cmdId } = await bare.process.executeSessionCommand(session, {
        command: script,
        runAsync: true,
        suppressInputEcho: true,
      });
      const arrivals = new Arrivals();
      const following = bare.process.getSessionCommandLogs(
        session,
        cmdId,
        (text) => arrivals.add(Buffer.byteLength(text)),
        () => undefined,
      );
      return {
        write: (line) => bare.process.sendSessionCommandInput(session, cmdId, line),
        received: (bytes) => arrivals.until(bytes),
        close: async () => {
          await bare.process.deleteSession(session);
          // The SDK takes the cut connection for the end.
          await following.catch(() => undefined);
        },
      };
    },
    close: async () => {
      await Promise.all([...opened].map((sandbox) => sandbox.close()));
      await sdk[Symbol.asyncDispose]();
      await daytona.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

class Arrivals {
  #bytes = 0;
  #waiting: { readonly bytes: number; readonly resolve: () => void } | undefined;

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#waiting !== undefined && this.#bytes >= this.#waiting.bytes) this.#waiting.resolve();
  }

  until(bytes: number): Promise<void> {
    if (this.#bytes >= bytes) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting = { bytes, resolve };
    });
  }
}
