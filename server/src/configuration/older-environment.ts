/** Variables of the runner that Ambit replaces, by Ambit's. If several are set, the first one counts. */
const renamed: ReadonlyMap<string, readonly string[]> = new Map([
  ["AMBIT_HOST", ["AGENTA_RUNNER_HOST", "AGENTA_AGENT_RUNNER_HOST"]],
  ["AMBIT_PORT", ["AGENTA_RUNNER_PORT", "AGENTA_AGENT_RUNNER_PORT"]],
  ["AMBIT_TOKEN", ["AGENTA_RUNNER_TOKEN", "AGENTA_AGENT_RUNNER_TOKEN"]],
  ["AMBIT_REPLICA_ID", ["AGENTA_RUNNER_REPLICA_ID"]],
  ["AMBIT_LOG_LEVEL", ["AGENTA_RUNNER_LOG_LEVEL"]],
  ["AMBIT_CONCURRENT_RUNS", ["AGENTA_RUNNER_CONCURRENCY_LIMIT"]],
  ["AMBIT_DENY_PERMISSIONS", ["AGENTA_RIVET_DENY_PERMISSIONS", "SANDBOX_AGENT_DENY_PERMISSIONS"]],
  ["DAYTONA_API_KEY", ["AGENTA_RUNNER_DAYTONA_API_KEY"]],
]);

/** Variables whose setting is in the configuration file, with its path there. */
const configured: ReadonlyMap<string, string> = new Map([
  ["AGENTA_RUNNER_ENABLED_SANDBOX_PROVIDERS", "the sandboxes among `plugins`"],
  ["AGENTA_RUNNER_DEFAULT_SANDBOX_PROVIDER", "the first sandbox among `plugins`"],
  ["AGENTA_RUNNER_RUN_TOTAL_TIMEOUT_MS", "`limits.runTimeoutMs`"],
  ["AGENTA_RUNNER_RUN_IDLE_TIMEOUT_MS", "`limits.idleMs`"],
  ["AGENTA_RUNNER_RUN_TTFB_TIMEOUT_MS", "`limits.firstResponseMs`"],
  ["AGENTA_RUNNER_TOOL_CALL_TIMEOUT_MS", "`limits.toolMs`"],
  ["AGENTA_AGENT_TOOLS_TIMEOUT", "`limits.toolMs`"],
  ["AGENTA_AGENT_TOOL_CALL_TIMEOUT_MS", "`limits.toolMs`"],
  ["AGENTA_AGENT_MCPS_HOST_ALLOWLIST", "`allowedRanges` of @ambit/mcp-client"],
  ["AGENTA_RUNNER_DAYTONA_API_URL", "`apiUrl` of @ambit/sandbox-daytona"],
  ["AGENTA_RUNNER_DAYTONA_TARGET", "`target` of @ambit/sandbox-daytona"],
  ["AGENTA_RUNNER_DAYTONA_SNAPSHOT", "`snapshot` of @ambit/sandbox-daytona"],
  ["AGENTA_RUNNER_DAYTONA_IMAGE", "`image` of @ambit/sandbox-daytona"],
  ["AGENTA_RUNNER_DAYTONA_AUTOSTOP_MINUTES", "`autoStopMinutes` of @ambit/sandbox-daytona"],
  ["AGENTA_RUNNER_DAYTONA_AUTODELETE_MINUTES", "`ttlMinutes` of @ambit/sandbox-daytona"],
]);

/** The result of reading the variables of the runner that Ambit replaces. */
export interface OlderEnvironment {
  /** Ambit's variables, with the values of the others. */
  readonly variables: Readonly<Record<string, string>>;
  /** The variable that each was read from. */
  readonly sources: Readonly<Record<string, string>>;
  /** Variables that hold a secret: to be deleted from the process's environment. */
  readonly secrets: readonly string[];
  /** One sentence per variable that was read or has no effect, with what to set instead. Without values. */
  readonly notices: readonly string[];
}

/** Reads the variables of the runner that Ambit replaces. A blank value counts as unset, as it did there. Pure. */
export function readOlderEnvironment(given: NodeJS.ProcessEnv): OlderEnvironment {
  const variables: Record<string, string> = {};
  const sources: Record<string, string> = {};
  const notices: string[] = [];
  const isSet = (name: string) => (given[name] ?? "").trim() !== "";
  for (const [ours, theirs] of renamed) {
    for (const name of theirs.filter(isSet)) {
      if (isSet(ours) || variables[ours] !== undefined) {
        notices.push(
          `${name} has no effect where ${isSet(ours) ? ours : "another name of it"} is set: unset it`,
        );
        continue;
      }
      variables[ours] = (given[name] ?? "").trim();
      sources[ours] = name;
      notices.push(`${name} is read as ${ours}: rename it`);
    }
  }
  const known = new Set([...renamed.values()].flat());
  for (const name of Object.keys(given).filter(isSet).sort()) {
    const place = configured.get(name);
    if (place !== undefined) notices.push(`${name} has no effect: set ${place} in the configuration`);
    else if (/^AGENTA_(AGENT_)?RUNNER_/.test(name) && !known.has(name))
      notices.push(`${name} has no effect, and no counterpart here: unset it`);
  }
  return { variables, sources, secrets: [...known].filter((name) => /TOKEN|KEY/.test(name)), notices };
}
