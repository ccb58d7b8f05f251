/** Runs without a boundary are never confined, even if the host could. */
import acp from "@ambit/harness-acp";
import local from "@ambit/sandbox-local";

export default { plugins: [{ use: local, config: { unconfined: "prefer" } }, acp] };
