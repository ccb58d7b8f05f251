import type { RunRequest } from "@ambit/core/contract";
import { loopTurns, type PublishedTool } from "@ambit/core/plugin";
import { Redactor } from "../../events/redaction/redactor.js";
import { formCharactersOf, secretsOutside } from "../../events/redaction/secrets.js";

/**
 * What a platform or an MCP server answers reaches the agent, and may repeat the credential that it was called with, as in
 * "invalid token: …", or in the description of a tool that is made for its user.
 */
export class ResultSecrets {
  #redactor: Promise<Redactor> | undefined;

  constructor(private readonly request: RunRequest) {}

  /** A tool's result without the credentials that stay outside the sandbox, in turns of the event loop. */
  async hide(output: string): Promise<string> {
    return (await this.#loaded()).longText(output);
  }

  /** The tools that an MCP server lists, in the same way. Those with a credential in their name can't be called under another: undefined. */
  async hideInTools(tools: readonly PublishedTool[]): Promise<readonly (PublishedTool | undefined)[]> {
    const redactor = await this.#loaded();
    if (!redactor.hides) return tools;
    const release = await redactor.prepare({ tools });
    const hidden = redactor.value(tools);
    release();
    return hidden.map((tool, index) => (tool.name === tools[index]?.name ? tool : undefined));
  }

  #loaded(): Promise<Redactor> {
    this.#redactor ??= redactorFor(this.request);
    return this.#redactor;
  }
}

async function redactorFor(request: RunRequest): Promise<Redactor> {
  const secrets = secretsOutside(request);
  await loopTurns.take(formCharactersOf(secrets));
  return new Redactor(secrets);
}
