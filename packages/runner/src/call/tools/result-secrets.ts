import type { RunRequest } from "@ambit/core/contract";
import type { PublishedTool } from "@ambit/core/plugin";
import { Redactor } from "../../events/redaction/redactor.js";
import { secretsOutside } from "../../events/redaction/secrets.js";

/**
 * What a platform or an MCP server answers reaches the agent, and may repeat the credential that it was called with, as in
 * "invalid token: …", or in the description of a tool that is made for its user.
 */
export class ResultSecrets {
  #redactor: Redactor | undefined;

  constructor(private readonly request: RunRequest) {}

  /** A tool's result without the credentials that stay outside the sandbox. */
  hide(output: string): string {
    return this.#loaded().text(output);
  }

  /** The tools that an MCP server lists, in the same way. Those with a credential in their name can't be called under another: undefined. */
  hideInTools(tools: readonly PublishedTool[]): readonly (PublishedTool | undefined)[] {
    const redactor = this.#loaded();
    if (!redactor.hides) return tools;
    const hidden = redactor.value(tools);
    return hidden.map((tool, index) => (tool.name === tools[index]?.name ? tool : undefined));
  }

  #loaded(): Redactor {
    this.#redactor ??= new Redactor(secretsOutside(this.request));
    return this.#redactor;
  }
}
