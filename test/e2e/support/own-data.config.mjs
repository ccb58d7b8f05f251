/** Sessions in the test's own folder, so that the next runner finds what a killed one left. */
export default {
  plugins: [
    { use: "@ambit/sandbox-local", config: { dataFolder: process.env.AMBIT_E2E_DATA } },
    "@ambit/harness-acp",
  ],
  probes: { keepAcrossRestarts: true },
};
