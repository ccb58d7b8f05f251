import { AmbitClient, AmbitError } from "@ambit/client";
import { type Environment, takeEnvironment } from "../configuration/environment.js";
import { ConfigurationInvalid } from "../configuration/problems.js";
import { urlOf } from "../http/connections/address.js";
import { localTokenFor } from "../local-token.js";

/** A command that can't be carried out as it was typed. */
export class CommandRefused extends Error {
  override readonly name = "CommandRefused";
}

export interface ClientOptions {
  /** `--url`. */
  readonly url?: string;
}

/** A run of a server. */
export interface RunOptions extends ClientOptions {
  /** `--project`, by which the operator tells runs of one id apart. */
  readonly project?: string;
}

/**
 * Where the server is: `--url`, else `AMBIT_ADDRESS`, else what `AMBIT_HOST` and `AMBIT_PORT` say.
 * @throws ConfigurationInvalid for a `--url` that is none
 */
export function addressOf({ url }: ClientOptions, environment: Environment): string {
  const { AMBIT_HOST: host = "127.0.0.1", AMBIT_PORT: port = 8765, AMBIT_ADDRESS: address } = environment;
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
    throw new ConfigurationInvalid("--url", [`must be an http:// or https:// URL: ${urlOf(host, port)}`]);
  return (url ?? address ?? urlOf(host, port)).replace(/\/+$/, "");
}

/**
 * Client of a running `ambit serve`. Its token is what the environment sets, else what the server of this machine keeps
 * for its callers.
 */
export function connect(
  { project: projectId, ...options }: RunOptions,
  environment: Environment = takeEnvironment(process.env),
): AmbitClient {
  const url = addressOf(options, environment);
  const { AMBIT_TOKEN: configured } = environment;
  const token = () => configured ?? localTokenFor(url);
  return new AmbitClient({ url, token, ...(projectId === undefined ? {} : { projectId }) });
}

/** A server's refusal, as a line for the person who typed the command. */
export function lineOf(error: AmbitError): string {
  if (error.status === 401)
    return `${error.message}: set AMBIT_TOKEN to a token of this server, or be the user that started it`;
  return error.message;
}

export const isMissing = (error: unknown): boolean => error instanceof AmbitError && error.status === 404;
