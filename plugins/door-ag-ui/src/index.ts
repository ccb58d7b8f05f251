import type { RunRequest } from "@ambit/client";
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";
import { agUiDoor } from "./door.js";

export const configSchema = z.strictObject({
  /**
   * The request of every thread: its agent, tools, boundary, in the contract's fields. What a platform sends as
   * `forwardedProps.ambit` is merged over it, key by key. The server checks both, as it does every request. Default: empty.
   */
  request: z
    .custom<RunRequest>((value) => z.record(z.string(), z.unknown()).safeParse(value).success)
    .default({}),
});

export default definePlugin({
  name: "door-ag-ui",
  api: 1,
  config: configSchema,
  register: ({ add }, { request }) => add("door", agUiDoor(request)),
});
