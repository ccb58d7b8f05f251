// A real agent in a real jail, whose tool calls a platform.
export default {
  plugins: [
    "@ambit/sandbox-local",
    "@ambit/harness-acp",
    "@ambit/mcp-http",
    { use: "@ambit/executor-callback", config: { privateHosts: "allow" } },
    { use: "@ambit/store-postgres", config: { schema: "partition" } },
  ],
  server: { drainMs: 2_000 },
  store: { leaseMs: 6_000, retryTimeoutMs: 30_000 },
};
