import { AmbitError } from "@ambit/client";
import type { Overrides } from "../../configuration/load.js";
import { type PrinterOptions, printerFor } from "../display/record-printer.js";
import { readRequest } from "../read-request.js";
import { type ClientOptions, connect } from "../server-client.js";
import { print } from "./attach.js";
import { run } from "./run.js";

export type PrepareOptions = Overrides & PrinterOptions & ClientOptions;

/**
 * `ambit prepare`: prepares the `environment` of a request, so that its runs find it. A server that answers does it; without
 * one, and without `--url`, this process does.
 */
export async function prepare(file: string, options: PrepareOptions): Promise<number> {
  const body = preparing(await readRequest(file));
  const client = connect(options);
  try {
    await client.health();
  } catch (error) {
    const isUnreached = error instanceof AmbitError && error.code === "unreachable";
    if (!isUnreached || options.url !== undefined) throw error;
    return await run(file, options, body);
  }
  return await print(client.run(body), printerFor(options, process.stdout));
}

/** The same request, without an agent's turn. It ends with this command. What isn't a request is refused as one. */
function preparing(body: unknown) {
  const request = Object(body);
  // Without setup there is nothing to prepare: the request is refused by that field.
  return {
    onDisconnect: "cancel",
    ...request,
    environment: { ...Object(request.environment), prepareOnly: true },
  };
}
