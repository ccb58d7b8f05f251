import type { ForeignEnvironment } from "@ambit/core/plugin";

/** The Agenta runner's variables. */
export const foreignEnvironment: ForeignEnvironment = {
  renamed: {
    AMBIT_HOST: ["AGENTA_RUNNER_HOST", "AGENTA_AGENT_RUNNER_HOST"],
    AMBIT_PORT: ["AGENTA_RUNNER_PORT", "AGENTA_AGENT_RUNNER_PORT"],
    AMBIT_TOKEN: ["AGENTA_RUNNER_TOKEN", "AGENTA_AGENT_RUNNER_TOKEN"],
    AMBIT_REPLICA_ID: ["AGENTA_RUNNER_REPLICA_ID"],
    AMBIT_LOG_LEVEL: ["AGENTA_RUNNER_LOG_LEVEL"],
    AMBIT_CONCURRENT_RUNS: ["AGENTA_RUNNER_CONCURRENCY_LIMIT"],
    AMBIT_DENY_PERMISSIONS: ["AGENTA_RIVET_DENY_PERMISSIONS", "SANDBOX_AGENT_DENY_PERMISSIONS"],
    DAYTONA_API_KEY: ["AGENTA_RUNNER_DAYTONA_API_KEY"],
  },
  moved: {
    AGENTA_RUNNER_ENABLED_SANDBOX_PROVIDERS: "the sandboxes among `plugins`",
    AGENTA_RUNNER_DEFAULT_SANDBOX_PROVIDER: "the first sandbox among `plugins`",
    AGENTA_RUNNER_RUN_TOTAL_TIMEOUT_MS: "`limits.runTimeoutMs`",
    AGENTA_RUNNER_RUN_IDLE_TIMEOUT_MS: "`limits.idleMs`",
    AGENTA_RUNNER_RUN_TTFB_TIMEOUT_MS: "`limits.firstResponseMs`",
    AGENTA_RUNNER_TOOL_CALL_TIMEOUT_MS: "`limits.toolMs`",
    AGENTA_AGENT_TOOLS_TIMEOUT: "`limits.toolMs`",
    AGENTA_AGENT_TOOL_CALL_TIMEOUT_MS: "`limits.toolMs`",
    AGENTA_AGENT_MCPS_HOST_ALLOWLIST: "`allowedRanges` of @ambit/mcp-client",
    AGENTA_RUNNER_DAYTONA_API_URL: "`apiUrl` of @ambit/sandbox-daytona",
    AGENTA_RUNNER_DAYTONA_TARGET: "`target` of @ambit/sandbox-daytona",
    AGENTA_RUNNER_DAYTONA_SNAPSHOT: "`snapshot` of @ambit/sandbox-daytona",
    AGENTA_RUNNER_DAYTONA_IMAGE: "`image` of @ambit/sandbox-daytona",
    AGENTA_RUNNER_DAYTONA_AUTOSTOP_MINUTES: "`autoStopMinutes` of @ambit/sandbox-daytona",
    AGENTA_RUNNER_DAYTONA_AUTODELETE_MINUTES: "`ttlMinutes` of @ambit/sandbox-daytona",
  },
  others: /^AGENTA_(AGENT_)?RUNNER_/,
};
