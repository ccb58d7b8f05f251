import { projectOf, type RunRequest } from "@ambit/core/contract";
import type { Log, RemoteSpan } from "@ambit/core/plugin";

/** The log of one run: each line has the ids to search by, and those of the span in which it was written. */
export class RunLogger implements Log {
  readonly #ids: Readonly<Record<string, string>>;
  /** The run's present span. Default: the run has no trace. */
  span: () => RemoteSpan | undefined = () => undefined;

  constructor(
    readonly log: Log,
    runId: string,
    request: Pick<RunRequest, "sessionId" | "projectId" | "runContext">,
  ) {
    const { sessionId } = request;
    const projectId = projectOf(request);
    this.#ids = {
      runId,
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(projectId === undefined ? {} : { projectId }),
    };
  }

  debug(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.debug(this.#with(fields), message);
  }

  info(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.info(this.#with(fields), message);
  }

  warn(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.warn(this.#with(fields), message);
  }

  error(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.error(this.#with(fields), message);
  }

  #with(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const span = this.span();
    const trace = span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
    return { ...this.#ids, ...trace, ...fields };
  }
}
