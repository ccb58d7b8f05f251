import type { Overrides } from "../../configuration/load.js";
import { type PrinterOptions, printerFor } from "../display/record-printer.js";
import { exitCodeOf } from "../exit-codes.js";
import { readRequest } from "../read-request.js";
import { type ClientOptions, ServerClient, ServerRefused } from "../server-client.js";
import { recordsOf } from "./attach.js";
import { run } from "./run.js";

export type PrepareOptions = Overrides & PrinterOptions & ClientOptions;

/**
 * `ambit prepare`: prepares the `environment` of a request, so that its runs find it. A server that answers does it; without
 * one, and without `--url`, this process does.
 */
export async function prepare(file: string, options: PrepareOptions): Promise<number> {
  const body = preparing(await readRequest(file));
  let response: Response;
  try {
    response = await new ServerClient(options).send("POST", "/run", body, "application/x-ndjson");
  } catch (error) {
    const isUnreached = error instanceof ServerRefused && error.cause !== undefined;
    if (!isUnreached || options.url !== undefined) throw error;
    return await run(file, options, body);
  }
  const printer = printerFor(options, process.stdout);
  for await (const record of recordsOf(response)) {
    if (record.kind === "event") await printer.event(record.event);
    else {
      await printer.result(record.result);
      return exitCodeOf(record.result.failure);
    }
  }
  throw new ServerRefused("the server's answer breaks off");
}

/** The same request, without an agent's turn. What isn't a request is refused as one. */
function preparing(body: unknown): object {
  const given = Object(body);
  // Without setup there is nothing to prepare: the request is refused by that field.
  return { ...given, environment: { ...Object(given.environment), prepareOnly: true } };
}
