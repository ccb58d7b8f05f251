import { type Dialect, definePlugin } from "@ambit/core/plugin";
import { z } from "zod";
import { differences } from "./differences.js";
import { foreignEnvironment } from "./environment.js";
import { commandIdSchema, fields } from "./fields.js";
import { gatewayPolicy } from "./gateway-policy.js";
import { harnesses, olderKeys, translate } from "./translate.js";

/** Requests of the Agenta runner's callers, in its earliest and its latest spelling. */
export const agenta: Dialect = {
  name: "agenta",
  translate,
  keys: olderKeys,
  fields,
  command: (request) => {
    const { data: id } = commandIdSchema.safeParse(request.controlCommandId ?? request.control_command_id);
    return id === undefined ? undefined : { field: "controlCommandId", id };
  },
  harnesses,
  tokenHeaders: ["x-agenta-runner-token"],
  differences,
};

export default definePlugin({
  name: "compat-agenta",
  api: 1,
  config: z.strictObject({}),
  foreignEnvironment,
  register: ({ add }) => {
    add("dialect", agenta);
    add("toolPolicy", gatewayPolicy);
  },
});
