import { takeEnvironment } from "../../configuration/environment.js";
import { localTokenFor } from "../../local-token.js";
import { newToken } from "../../tenants/caller.js";
import { exitCodes } from "../exit-codes.js";
import { addressOf, type ClientOptions, CommandRefused } from "../server-client.js";

export interface TokenOptions extends ClientOptions {
  /** Whether the token of a server on this machine is printed, in place of a new one. */
  readonly local?: boolean;
}

/** `ambit token`: prints a new token with its hash, or the one that a server made for other programs of this machine. */
export async function token({ local = false, ...options }: TokenOptions): Promise<number> {
  const text = local ? await localToken(options) : JSON.stringify(newToken(), undefined, 2);
  process.stdout.write(`${text}\n`);
  return exitCodes.ok;
}

/** @throws CommandRefused where no server of this user keeps one */
async function localToken(options: ClientOptions): Promise<string> {
  const address = addressOf(options, takeEnvironment(process.env));
  const tokenInFile = await localTokenFor(address);
  if (tokenInFile !== undefined) return tokenInFile;
  const fix = "start `ambit serve` as this user and without AMBIT_TOKEN, or name its address with --url";
  throw new CommandRefused(`no server of this user keeps a token for ${address}: ${fix}`);
}
