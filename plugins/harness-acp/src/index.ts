import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { MessageIntake } from "./driver/limits.js";
import { AcpHarness } from "./harness/acp-harness.js";
import { customProfile } from "./profiles/custom.js";
import { profiles } from "./profiles/index.js";

export { type DriverLimits, defaultDriverLimits } from "./driver/limits.js";
export { AcpHarness, type AcpHarnessOptions } from "./harness/acp-harness.js";
export type {
  Instructions,
  ModelAccess,
  ModelEndpoint,
  Preparation,
  PreparedProfile,
  Profile,
  ProgramSource,
  Quirks,
  RouteAccess,
  SessionSettings,
  ToolCallView,
  ToolEndpoint,
  ToolIdentity,
} from "./profiles/profile.js";
export { inputInWords, publishedTool } from "./profiles/tool-names.js";

export default definePlugin({
  name: "harness-acp",
  api: 1,
  config: configSchema,
  register: (registrar, { profiles: ids, folder = process.cwd(), overrides, agents, prewarm, limits }) => {
    const intake = new MessageIntake(limits);
    for (const id of ids) {
      const { command, commandInImage, node, env = {} } = overrides[id] ?? {};
      const options = { limits, intake, folder, command, commandInImage, node, env, prewarm: prewarm[id] };
      registrar.add("harness", new AcpHarness(profiles[id], options));
    }
    for (const [id, agent] of Object.entries(agents)) {
      const { command, commandInImage } = agent;
      const options = { limits, intake, folder, command, commandInImage, prewarm: prewarm[id] };
      registrar.add("harness", new AcpHarness(customProfile(id, agent), options));
    }
  },
});
