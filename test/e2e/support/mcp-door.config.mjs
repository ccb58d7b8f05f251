/** The door for clients of MCP, two tenants by the hashes of their tokens, and MCP servers on loopback. */
const tokens = JSON.parse(process.env.AMBIT_E2E_TENANTS ?? "[]");

export default {
  extends: "defaults",
  server: { publicUrl: "https://ambit.example.com/base" },
  probes: { keepAcrossRestarts: true },
  tokens,
  plugins: [
    { use: "@ambit/executor-callback", config: { allowedRanges: ["127.0.0.0/8"] } },
    { use: "@ambit/mcp-client", config: { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true } },
    {
      use: "@ambit/door-mcp",
      config: {
        heartbeatMs: 100,
        request: {
          harness: "demo",
          permissions: {
            default: "allow",
            rules: [{ pattern: "shell(echo please:*)", permission: "ask" }],
          },
          toolCallback: { endpoint: "http://127.0.0.1:9/", authorization: "Bearer the-deployers-secret" },
        },
      },
    },
  ],
};
