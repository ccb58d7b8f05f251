import type { Coverage, Finding } from "../boundary/index.js";

/**
 * Anything that acts during a run. `Use` is what brings it in: nothing for a sandbox or a delivery, a tool for an
 * executor, a request for a harness, an MCP server for a tool source.
 */
export interface Actor<Use = void> extends Coverage<Use> {
  /**
   * Sees by doing, with a control, what this host lets it enforce: never by asking whether a program exists.
   * A claim without a finding counts as not proven. Must settle when `signal` aborts.
   */
  probe(signal: AbortSignal): Promise<readonly Finding[]>;
}
