import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { startServer } from "../../http/listen.js";
import { openAmbit } from "../../open.js";
import { exitCodes } from "../exit-codes.js";
import { EndingSignals, exitCodeOfSignal } from "../signals.js";

/** `ambit serve`: until SIGTERM or Ctrl-C, or until the `npx` that started it is gone; a second signal ends it immediately. */
export async function serve(overrides: Overrides): Promise<number> {
  const environment = takeEnvironment(process.env);
  const fault = Promise.withResolvers<never>();
  // This process also has other callers' runs, which must survive a fault of one run.
  const unhandled = { survives: true, end: fault.reject };
  const ambit = await Promise.race([
    openAmbit({ environment, overrides, logLevel: "info", unhandled }),
    fault.promise,
  ]);
  const { log, settings } = ambit;
  if (settings.leftOut.length > 0) {
    const message =
      'plugins leaves out default plugins: say "extends": "defaults" to load them too, or "none"';
    log.info({ leftOut: settings.leftOut }, message);
  }
  const signals = new EndingSignals();
  const first = Promise.race([signals.next(), starterGone()]);
  const starting = startServer(ambit);
  // A store that isn't reached may hold up the start for long.
  const early = await Promise.race([starting.then(() => undefined), first, fault.promise]);
  if (early !== undefined) {
    log.info({ signal: early }, "shutting down before the start is complete");
    const stopped = starting.then((started) => started.close()).then(() => exitCodes.ok);
    return Promise.race([stopped, signals.next().then(exitCodeOfSignal)]);
  }
  const server = await starting;
  const { url, healthUrl } = server;
  log.info({ url, healthUrl, configuration: settings.file ?? "defaults" }, "listening");
  const failure = new Promise<never>((_resolve, reject) => void server.opened.catch(reject));
  const signal = await Promise.race([first, failure, fault.promise]).catch(async (error: unknown) => {
    // Runs would get 503 until somebody mends the store. A supervisor sees a process that ends.
    await server.close();
    throw error;
  });
  log.info({ signal }, "shutting down");
  const second = signals.next().then((name) => {
    log.warn({ signal: name }, "exiting immediately");
    return exitCodeOfSignal(name);
  });
  return Promise.race([server.close().then(() => exitCodes.ok), second]);
}

/** Milliseconds between two looks at the parent. */
const lookMs = 500;

/** What npm tells a program that it starts, by `npx` or a script. */
const startedByNpm = ["npm_lifecycle_event", "npm_command"] as const;

/**
 * Resolves when the `npx` or `npm run` that started this process is gone: it doesn't pass a signal on, so that `kill` would end npm
 * and leave the server. Never resolves for a process that npm didn't start: a daemon outlives its parent.
 */
function starterGone(): Promise<"npm"> {
  return new Promise((resolve) => {
    if (!startedByNpm.some((name) => process.env[name] !== undefined)) return;
    const first = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid === first) return;
      clearInterval(timer);
      resolve("npm");
    }, lookMs);
    timer.unref();
  });
}
