// The plugins that Ambit loads by default, with a store that replicas share in place of the local one.
// AMBIT_POSTGRES_URL says where it is.
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
