import { type AgentEvent, isAmbitError, PluginLoadFailed, RunCancelled, type RunResult } from "@ambit/core";
import { recordsIn } from "@ambit/durable";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import type { Ambit } from "../../open.js";
import { recordInMemory } from "../../recording.js";
import { failedResult, isServerFault, MalformedJson } from "../../results.js";
import { isAsked, Questions } from "../by-hand/ask/questions.js";
import type { Terminal } from "../by-hand/ask/terminal.js";
import { ByHand, type ByHandRunOptions, isByHand } from "../by-hand/by-hand.js";
import { Progress } from "../display/progress.js";
import { type PrinterOptions, printerFor, type RecordPrinter } from "../display/record-printer.js";
import { exitCodeOf } from "../exit-codes.js";
import { openForCommand } from "../open-command.js";
import { readRequest } from "../read-request.js";
import { EndingSignals, exitCodeOfSignal } from "../signals.js";

/** What a refusal adds about words that stand where a request's file is expected. */
const orPrompt = ": if these words are a prompt, add --folder . or --agent demo";

export type RunCommandOptions = Overrides & PrinterOptions & ByHandRunOptions;

/**
 * `ambit run`: runs one request in this process, with exactly one result on stdout. A signal ends the run, which
 * still returns its result. Before the run begins, that is the failure `run_cancelled`.
 *
 * @param words the request's file; or the prompt, if the options describe the run.
 * @param given the request, if it was read already.
 */
export async function run(words: string, options: RunCommandOptions, given?: object): Promise<number> {
  const interruption = new Interruption();
  const terminal = terminalOf(options);
  const byHand = isByHand({ ...options }) ? new ByHand(words, options, terminal) : undefined;
  // The plugins' variables are taken from this process's; a model's keys stay for the request.
  const variables = { ...process.env };
  const environment = takeEnvironment(process.env);
  const progress = new Progress();
  // What the terminal asks, the timeline doesn't show a second time.
  const isShown = (event: AgentEvent) =>
    terminal === undefined || event.type !== "interaction_request" || !isAsked(event);
  const printer = printerFor(options, process.stdout, progress, isShown);
  let ambit: Ambit | undefined;
  try {
    const workspaceFolder = await byHand?.workspaceFolder();
    ambit = await interruption.before(
      openForCommand(options, {
        environment,
        copied: options.folder,
        keepsNoFiles: true,
        workspaceFolderOf: () => workspaceFolder,
        local: () => byHand?.local ?? [],
      }),
    );
    const reading = byHand?.request(variables) ?? Promise.resolve(given ?? readRequest(words, orPrompt));
    const body = await interruption.before(reading);
    if (!printer.isForProgram) sayWhetherProbing(ambit, progress);
    return await drive(ambit, printer, { body, byHand, terminal }, interruption);
  } catch (error) {
    // An error from before the run becomes a result here. The run's own result has any later one.
    const isResult = isAmbitError(error) && !(error instanceof PluginLoadFailed);
    if (!isResult && !(error instanceof MalformedJson)) throw error;
    const result = failedResult(error);
    if (isServerFault(error)) ambit?.log.error({ error }, "the run could not begin");
    ambit?.runner.refused(result.failure);
    await printer.result(result);
    const fix = byHand?.fixFor(result.failure);
    if (fix !== undefined) process.stderr.write(`ambit: ${fix}\n`);
    return interruption.exitCode ?? exitCodeOf(result.failure);
  } finally {
    progress.end();
    await ambit?.runner.drain(0);
    await ambit?.files.close();
    await ambit?.evidence?.keep(ambit.registry);
    await byHand?.close();
  }
}

async function drive(
  ambit: Ambit,
  printer: RecordPrinter,
  { body, byHand, terminal }: Asked,
  interruption: Interruption,
): Promise<number> {
  const { runner } = ambit;
  const { runs } = await recordInMemory(ambit, "ambit run");
  const run = await interruption.before(runner.reserve().admit(body, { keepsEvents: printer.keepsEvents }));
  interruption.whenItHappens((reason) => run.cancel(reason));
  await byHand?.begin();
  const started = await runs.start(run, "");
  if (started === "over_quota" || "existing" in started)
    throw new TypeError("a first run has no predecessor");
  const leaving = new AbortController();
  const questions =
    terminal === undefined
      ? undefined
      : new Questions(terminal, (id, answer) => runner.answer(run.key, id, answer), leaving.signal);
  let result: RunResult | undefined;
  try {
    for await (const records of runs.follow(run.key, 0, leaving.signal)) {
      for (const record of recordsIn(records)) {
        if (record.kind === "event") {
          await printer.event(record);
          if (record.event.type === "interaction_request") {
            questions?.ask(record.event);
            byHand?.asked(record.event);
          }
        }
        // The recorder's result has the events, where the printer wants them.
        else result = (await started.recorder.done) ?? record.result;
      }
    }
    leaving.abort();
    if (result !== undefined) {
      await byHand?.remember(result);
      await printer.result(result);
    }
    if (result !== undefined && byHand !== undefined) {
      const print = (text: string) => printText(text, printer);
      const code = await byHand.end(ambit, run.key, result, print, interruption.atPrompt());
      return interruption.exitCode ?? code;
    }
  } finally {
    leaving.abort();
    // If its output can't be written any more.
    if (result === undefined) run.cancel(new RunCancelled("The run's reader has left.", "caller"));
    await runs.close();
  }
  return interruption.exitCode ?? exitCodeOf(result?.failure);
}

/** The first run waits for the probes. */
function sayWhetherProbing({ registry, evidence, settings }: Ambit, progress: Progress): void {
  if (registry.evidence().length === registry.registrations.length) return;
  const minutes = settings.probes.maxAgeMs / 60_000;
  const lifetime = evidence === undefined ? "" : ` (kept for ${minutes} minutes)`;
  progress.step(`probing what this host guarantees${lifetime}`);
}

/** What the command line asks for. */
interface Asked {
  readonly body: unknown;
  readonly byHand: ByHand | undefined;
  readonly terminal: Terminal | undefined;
}

/** A person who reads the timeline and can answer. */
function terminalOf({ json, stream }: PrinterOptions): Terminal | undefined {
  const isRead = process.stdin.isTTY && process.stdout.isTTY && json !== true && stream !== true;
  return isRead ? { input: process.stdin, output: process.stdout } : undefined;
}

/** Text for a person. */
async function printText(text: string, { isForProgram }: RecordPrinter): Promise<void> {
  (isForProgram ? process.stderr : process.stdout).write(text);
}

/**
 * Ctrl-C or SIGTERM. The first one ends the run, or the question that follows it. A second one while the run ends, ends the
 * process immediately: the next start cleans up what is left.
 */
class Interruption {
  readonly #reason: Promise<RunCancelled>;
  #prompt: AbortController | undefined;
  /** Set by the first signal. */
  exitCode: number | undefined;

  constructor() {
    const first = Promise.withResolvers<RunCancelled>();
    this.#reason = first.promise;
    void this.#listen(first.resolve);
  }

  async #listen(interrupt: (reason: RunCancelled) => void): Promise<void> {
    const signals = new EndingSignals();
    for (;;) {
      const signal = await signals.next();
      const isOver = this.#prompt === undefined ? this.exitCode !== undefined : this.#prompt.signal.aborted;
      this.exitCode ??= exitCodeOfSignal(signal);
      if (isOver) process.exit(this.exitCode);
      const reason = new RunCancelled("The run was interrupted.", "caller");
      interrupt(reason);
      this.#prompt?.abort(reason);
    }
  }

  /** The run has ended: from now on, a signal ends the question instead. @returns aborts with it */
  atPrompt(): AbortSignal {
    this.#prompt = new AbortController();
    return this.#prompt.signal;
  }

  whenItHappens(act: (reason: RunCancelled) => void): void {
    void this.#reason.then(act);
  }

  /** The step's result. @throws RunCancelled if the interruption comes first. */
  before<Result>(step: Promise<Result>): Promise<Result> {
    const interrupted = this.#reason.then((reason) => {
      throw reason;
    });
    return Promise.race([step, interrupted]);
  }
}
