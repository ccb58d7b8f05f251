import { isAmbitError } from "@ambit/core";
import { messageOf, type SandboxBackend } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { KitScope, probeWithin, silentLog } from "../stage/kit-scope.js";
import { openBoundary } from "../stage/near-decoys.js";
import { freshId } from "../stage/stage.js";
import { skip } from "./skip.js";

const callMs = 30_000;

/** What an author does about an error that nothing handled. */
const fix =
  "listen to `error` of each child process, stream and socket, and await each promise: in the server, this ends all runs of the plugin";

/** The requirements on a backend whose platform's program isn't there. */
export function describeWithoutProgram(makeBackend: (() => SandboxBackend) | undefined): void {
  it("says so where its platform's program isn't there, and leaves no error unhandled", {
    timeout: 3 * callMs,
  }, async (context) => {
    if (makeBackend === undefined) return skip(context, "the suite has no option withoutProgram");
    const { proven, opening, unhandled } = await tryWithoutProgram(makeBackend());
    expect(unhandled, fix).toEqual([]);
    expect(proven, "its probe must prove nothing").toEqual([]);
    expect(opening, "open() must reject, with an error of Ambit's such as SandboxFailed").toBe("rejected");
  });
}

export interface TriedWithoutProgram {
  /** What its probe says is proven. */
  readonly proven: readonly string[];
  /** `foreign`: it rejects with an error that isn't one of Ambit's. */
  readonly opening: "opened" | "rejected" | "foreign" | "hung";
  /** Messages of the errors that nothing handled. */
  readonly unhandled: readonly string[];
}

/** Probes a backend and opens a sandbox of it, and notes errors that it leaves unhandled. */
export async function tryWithoutProgram(backend: SandboxBackend, ms = callMs): Promise<TriedWithoutProgram> {
  const unhandled: string[] = [];
  const first = Promise.withResolvers<"unhandled">();
  const restore = noteUnhandled((error) => {
    unhandled.push(messageOf(error));
    first.resolve("unhandled");
  });
  const scope = new KitScope();
  try {
    const probing = probeWithin(backend, ms).catch(() => []);
    const findings = await Promise.race([probing, first.promise]);
    const proven = findings === "unhandled" ? [] : findings.filter((one) => one.proven);
    const spec = {
      id: freshId(),
      boundary: openBoundary,
      required: [],
      requiredPaths: [],
      onDecision: () => undefined,
      log: silentLog,
    };
    const opening = (async () => backend.open(spec, scope))().then(
      async (sandbox) => {
        await sandbox.close();
        return "opened" as const;
      },
      (error: unknown) => (isAmbitError(error) ? ("rejected" as const) : ("foreign" as const)),
    );
    const opened = await Promise.race([opening, first.promise.then(() => "hung" as const)]);
    // Errors of processes that were just started come in a later turn.
    await new Promise((resolve) => setImmediate(resolve));
    return { proven: proven.map(({ capability }) => capability), opening: opened, unhandled };
  } finally {
    await scope.close();
    await backend.close?.(AbortSignal.timeout(ms));
    restore();
  }
}

/** Takes the place of the test runner's own listeners, which would end its run without naming a test. */
function noteUnhandled(note: (error: unknown) => void): () => void {
  const events = ["uncaughtException", "unhandledRejection"] as const;
  const earlier = events.map((event) => ({ event, listeners: process.rawListeners(event) }));
  for (const event of events) {
    process.removeAllListeners(event);
    process.on(event, note);
  }
  return () => {
    for (const { event, listeners } of earlier) {
      process.off(event, note);
      for (const listener of listeners) Reflect.apply(process.on, process, [event, listener]);
    }
  };
}
