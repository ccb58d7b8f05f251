/** Sessions in a folder of the test's own, so that a runner started after a killed one finds what it left. */
import acp from "@ambit/harness-acp";
import local from "@ambit/sandbox-local";

export default { plugins: [{ use: local, config: { dataFolder: process.env.AMBIT_E2E_DATA } }, acp] };
