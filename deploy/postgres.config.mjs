// Ambit's default plugins, with a store that replicas share instead of the local one. AMBIT_POSTGRES_URL is its
// address.
export default {
  plugins: [
    "@ambit/sandbox-local",
    "@ambit/harness-acp",
    "@ambit/mcp-http",
    "@ambit/model-route",
    "@ambit/mcp-client",
    "@ambit/executor-callback",
    "@ambit/executor-code",
    "@ambit/executor-client",
    "@ambit/store-postgres",
    "@ambit/telemetry-opentelemetry",
    "@ambit/metrics-prometheus",
  ],
};
