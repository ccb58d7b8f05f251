/** Runs without a boundary are never confined, even if the host could. */
export default {
  plugins: [
    { use: "@ambit/sandbox-local", config: { unconfined: "prefer" } },
    "@ambit/harness-acp",
    "@ambit/compat-agenta",
  ],
  probes: { keepAcrossRestarts: true },
};
