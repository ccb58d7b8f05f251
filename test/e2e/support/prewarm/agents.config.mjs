const { PREWARM_AGENTS = "", PREWARM_DOCKER } = process.env;
const sandbox = PREWARM_DOCKER === undefined ? "local" : "docker";
const request = {
  sandbox,
  sandboxPermission: { network: "off", filesystem: "workspace", secrets: "hidden" },
  permissions: { default: "allow" },
};
const gemini = {
  ...request,
  // Its tool's endpoint is on this machine.
  sandboxPermission: { ...request.sandboxPermission, enforcement: "best_effort" },
  model: "gemini-2.5-flash",
  modelConnection: { credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" } }] },
};
const prewarm = {
  demo: [{ agents: 1, request }],
  gemini: [{ agents: 1, tools: true, request: gemini }],
};

/** One of Ambit's own agents waits: PREWARM_AGENTS. */
export default {
  plugins: [
    PREWARM_DOCKER === undefined
      ? "@ambit/sandbox-local"
      : { use: "@ambit/sandbox-docker", config: JSON.parse(PREWARM_DOCKER) },
    {
      use: "@ambit/harness-acp",
      config: { prewarm: { [PREWARM_AGENTS]: prewarm[PREWARM_AGENTS] } },
    },
    "@ambit/model-route",
    "@ambit/mcp-http",
    "@ambit/executor-callback",
    "@ambit/executor-client",
    "@ambit/metrics-prometheus",
  ],
};
