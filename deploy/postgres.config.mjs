// The plugins that come with Ambit, and a store that replicas share. AMBIT_POSTGRES_URL says where.
export default {
  plugins: [
    "@ambit/sandbox-local",
    "@ambit/harness-acp",
    "@ambit/mcp-http",
    "@ambit/mcp-client",
    "@ambit/executor-callback",
    "@ambit/executor-code",
    "@ambit/executor-client",
    "@ambit/store-postgres",
  ],
};
