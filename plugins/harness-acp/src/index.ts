import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { AcpHarness } from "./harness/acp-harness.js";
import { profiles } from "./profiles/index.js";

export type { DriverLimits } from "./driver/limits.js";
export { AcpHarness, type AcpHarnessOptions } from "./harness/acp-harness.js";
export type {
  Instructions,
  ModelAccess,
  Preparation,
  Prepared,
  Profile,
  ProgramSource,
  Quirks,
  ToolCallView,
  ToolIdentity,
} from "./profiles/profile.js";

export default definePlugin({
  name: "harness-acp",
  api: 1,
  config: configSchema,
  register: (registrar, { profiles: ids, folder = process.cwd(), overrides, limits }) => {
    for (const id of ids) {
      const { command, commandInImage, env = {} } = overrides[id] ?? {};
      const options = { limits, folder, command, commandInImage, env };
      registrar.add("harness", new AcpHarness(profiles[id], options));
    }
  },
});
