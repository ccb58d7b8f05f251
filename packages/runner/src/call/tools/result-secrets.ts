import type { RunRequest } from "@ambit/core/contract";
import { loopTurns } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { Redactor } from "../../events/redaction/redactor.js";
import { formCharactersOf, secretsOutside } from "../../events/redaction/secrets.js";
import { tokens } from "../../tokens.js";

/**
 * What a platform or an MCP server answers reaches the agent, and may repeat the credential that it was called with, as in
 * "invalid token: …".
 */
@injectable()
export class ResultSecrets {
  #redactor: Promise<Redactor> | undefined;

  constructor(@inject(tokens.request) private readonly request: RunRequest) {}

  /** A tool's result without the credentials that stay outside the sandbox, in turns of the event loop. */
  async hide(output: string): Promise<string> {
    this.#redactor ??= redactorFor(this.request);
    return (await this.#redactor).longText(output);
  }
}

async function redactorFor(request: RunRequest): Promise<Redactor> {
  const secrets = secretsOutside(request);
  await loopTurns.take(formCharactersOf(secrets));
  return new Redactor(secrets);
}
