import { takeEnvironment } from "../../configuration/environment.js";
import { localTokenFor } from "../../local-token.js";
import { exitCodes } from "../exit-codes.js";
import { addressOf, type ClientOptions, CommandRefused } from "../server-client.js";

/** `ambit token --local`: prints the token of a server that was started without one, for other programs to send. */
export async function printLocalToken(options: ClientOptions): Promise<number> {
  const address = addressOf(options, takeEnvironment(process.env));
  const token = await localTokenFor(address);
  if (token === undefined) {
    const fix = "start `ambit serve` as this user and without AMBIT_TOKEN, or name its address with --url";
    throw new CommandRefused(`no server of this user keeps a token for ${address}: ${fix}`);
  }
  process.stdout.write(`${token}\n`);
  return exitCodes.ok;
}
