import { messageOf, SandboxFailed } from "@ambit/core/plugin";
import { fromRelaySchema, lineOf, MessageReader, maxMessageBytes, type RelaySettings } from "./messages.js";

import type { GatePipe } from "./remote-gate.js";

export interface RelayOptions {
  /** To the relay's program, which it has been given. */
  readonly pipe: GatePipe;
  readonly settings: Omit<RelaySettings, "secret"> & { readonly secret: Buffer };
  readonly signal: AbortSignal;
  /** Called once if it is lost before it is closed. */
  onLost(failure: SandboxFailed): void;
}

export interface StartedRelay {
  /** Milliseconds after which the gate was reached. */
  readonly afterMs: number;
  close(): Promise<void>;
}

/** For the relay's program to start, and for its last attempt, in milliseconds. */
const startMs = 30_000;

/** Resolves when the relay serves its socket, and has reached the gate. @throws SandboxFailed, the signal's reason */
export async function openRelay({ pipe, settings, signal, onLost }: RelayOptions): Promise<StartedRelay> {
  const { promise, resolve, reject } = Promise.withResolvers<StartedRelay>();
  promise.catch(() => undefined);
  let [isOpen, isClosed, heardAt] = [false, false, performance.now()];
  const write = (message: object) =>
    void pipe.write(lineOf(message)).catch((error: unknown) => lose(messageOf(error)));
  const close = async () => {
    isClosed = true;
    clearTimeout(late);
    clearInterval(pings);
    signal.removeEventListener("abort", stop);
    await pipe.close();
  };
  const lose = (why: string) => {
    const failure = new SandboxFailed(`The sandbox doesn't reach its gate: ${why.slice(0, 500)}`);
    reject(failure);
    if (isOpen && !isClosed) onLost(failure);
    void close().catch(() => undefined);
  };
  const stop = () => {
    reject(signal.reason);
    void close().catch(() => undefined);
  };
  const reader = new MessageReader(maxMessageBytes, (message) => {
    const said = fromRelaySchema.parse(message);
    if ("pong" in said) return;
    if ("failed" in said) return lose(said.failed);
    isOpen = true;
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
    resolve({ afterMs: said.ready.afterMs, close });
  });
  const read = async () => {
    try {
      for await (const bytes of pipe.output) {
        heardAt = performance.now();
        reader.push(bytes);
      }
      lose("the relay's program ended");
    } catch (error) {
      lose(messageOf(error));
    }
  };
  const { secret, settleMs, silenceMs } = settings;
  const late = setTimeout(() => lose("it says nothing"), settleMs + startMs);
  // Also so that nothing between takes the stream for an idle one.
  const pings = setInterval(() => {
    if (performance.now() - heardAt > silenceMs) lose(`the relay said nothing for ${silenceMs} ms`);
    else write({ ping: true });
  }, silenceMs / 4).unref();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  void read();
  write({ ...settings, secret: secret.toString("hex") });
  return await promise;
}
