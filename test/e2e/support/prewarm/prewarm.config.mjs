import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("./agent.mjs", import.meta.url));
const { PREWARM_TARGET = "", PREWARM_SLEEP = "1", PREWARM_DOCKER } = process.env;
const sandboxPermission = {
  network: { mode: "allowlist", allowlist: [new URL(PREWARM_TARGET).host] },
  filesystem: "workspace",
};
const sandbox = PREWARM_DOCKER === undefined ? "local" : "docker";
const deeds = {
  nothing: "",
  dial: PREWARM_TARGET,
  fork: PREWARM_SLEEP,
  "fork-detached": PREWARM_SLEEP,
  workspace: "",
  home: "",
  "message-early": "",
  "message-late": "",
  "second-response": "",
};
const request = { sandbox, sandboxPermission, permissions: { default: "allow" } };

/** One agent for each thing that an agent may do before a run has it; all of them are started ahead. */
export default {
  plugins: [
    ...(PREWARM_DOCKER === undefined
      ? ["@ambit/sandbox-local"]
      : [{ use: "@ambit/sandbox-docker", config: JSON.parse(PREWARM_DOCKER) }]),
    {
      use: "@ambit/harness-acp",
      config: {
        profiles: ["demo"],
        agents: Object.fromEntries(
          Object.entries(deeds).map(([deed, argument]) => [
            deed,
            { command, args: [deed, argument], ahead: {} },
          ]),
        ),
        prewarm: Object.fromEntries(Object.keys(deeds).map((deed) => [deed, [{ agents: 1, request }]])),
      },
    },
    "@ambit/mcp-http",
    "@ambit/executor-client",
    "@ambit/metrics-prometheus",
  ],
};
