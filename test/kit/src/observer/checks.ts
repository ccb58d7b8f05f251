import assert from "node:assert/strict";
import type { RunObservation, RunObserver } from "@ambit/core/plugin";
import { deepFrozen } from "../executor/frozen.js";
import { events, failed, type ObserverRig, secretRun, succeeded } from "./observer-rig.js";

/** A requirement on every observer. */
export interface ObserverCheck {
  readonly title: string;
  check(rig: ObserverRig): Promise<void>;
}

/** Milliseconds within which an observer must close. */
const closeMs = 5_000;

export const observerChecks: readonly ObserverCheck[] = [
  {
    title: "observes a run to its end without making it wait, and has written it when it is closed",
    check: async (rig) => {
      assert.match(rig.observer.name, /\S/);
      const { run } = secretRun("run-1");
      const observation = observed(rig.observer, run);
      for (const stage of ["opening", "starting", "streaming"] as const)
        requireNow("entered", observation.entered?.(stage));
      for (const event of events) requireNow("happened", observation.happened?.(deepFrozen({ ...event })));
      requireNow("entered", observation.entered?.("closing"));
      requireNow("ended", observation.ended?.(deepFrozen(succeeded(run))));
      await close(rig);
      assert.match(await rig.written(), /\S/, "nothing was written of a run that has ended");
    },
  },
  {
    title: "writes no credential of a request",
    check: async (rig) => {
      const { secret, run } = secretRun("run-1");
      const observation = observed(rig.observer, run);
      observation.recovery?.();
      for (const event of events) observation.happened?.(event);
      observation.ended?.(succeeded(run));
      await close(rig);
      const isWritten = (await rig.written()).includes(secret);
      assert.ok(
        !isWritten,
        "a credential was written: pass what is kept of a request through its run's `redact`",
      );
    },
  },
  {
    title: "observes runs that are refused, fail at once, are lost, or run side by side",
    check: async (rig) => {
      const { observer } = rig;
      const runs = ["run-1", "run-2", "run-3"].map((id) => secretRun(id).run);
      const observations = runs.map((run) => observed(observer, run));
      // The third one has no events, and the second one no end.
      for (const event of events)
        for (const one of observations.slice(0, 2)) requireNow("happened", one.happened?.(event));
      for (const at of [0, 2]) {
        const run = runs[at];
        if (run !== undefined) requireNow("ended", observations[at]?.ended?.(failed(run)));
      }
      const refusal = { code: "boundary_refused", status: 422, capabilities: ["network.deny"] };
      requireNow("refused", observer.refused?.(refusal));
      const lost = { runId: "run-4", harness: "demo", sandbox: "local", begunAt: Date.now() };
      requireNow("lost", observer.lost?.(lost));
      await close(rig);
    },
  },
  {
    title: "accepts an event of a type that it doesn't know, which a later version of Ambit may have",
    check: async (rig) => {
      const { run } = secretRun("run-1");
      const observation = observed(rig.observer, run);
      const happened = observation.happened?.bind(observation) ?? (() => undefined);
      requireNow(
        "happened",
        Reflect.apply(happened, undefined, [{ type: "kit_unknown", anything: [1, "x"] }]),
      );
      requireNow("ended", observation.ended?.(succeeded(run)));
      await close(rig);
    },
  },
  {
    title: "closes at once when its time is over",
    check: async (rig) => {
      const { run } = secretRun("run-1");
      observed(rig.observer, run).ended?.(succeeded(run));
      await close(rig, AbortSignal.abort());
    },
  },
];

function observed(observer: RunObserver, run: Parameters<RunObserver["observe"]>[0]): RunObservation {
  const observation = observer.observe(run);
  requireNow("observe", observation);
  assert.ok(observation !== undefined, "`observe` returned nothing: it must observe the kit's runs");
  return observation;
}

/** A promise would make nobody wait, and its rejection would end the process. */
function requireNow(method: string, returned: unknown): void {
  const isPromise = typeof returned === "object" && returned !== null && "then" in returned;
  assert.ok(!isPromise, `\`${method}\` must be synchronous, and not return a promise`);
}

async function close(
  { observer }: ObserverRig,
  signal: AbortSignal = AbortSignal.timeout(closeMs),
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`\`close\` took longer than ${closeMs} ms`)), closeMs);
  });
  try {
    await Promise.race([observer.close?.(signal), late]);
  } finally {
    clearTimeout(timer);
  }
}
