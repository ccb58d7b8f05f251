/** Sessions in the test's own folder, so that the next runner finds what a killed one left. */
import acp from "@ambit/harness-acp";
import local from "@ambit/sandbox-local";

export default { plugins: [{ use: local, config: { dataFolder: process.env.AMBIT_E2E_DATA } }, acp] };
