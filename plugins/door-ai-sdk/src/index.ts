import type { RunRequest } from "@ambit/client";
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";
import { aiSdkDoor } from "./door.js";

export const configSchema = z.strictObject({
  /**
   * The request of every chat: its agent, tools, boundary, in the contract's fields. What a platform sends as `ambit` is merged
   * over it, key by key. The server checks both, as it does every request. Default: empty.
   */
  request: z
    .custom<RunRequest>((value) => z.record(z.string(), z.unknown()).safeParse(value).success)
    .default({}),
});

export default definePlugin({
  name: "door-ai-sdk",
  api: 1,
  config: configSchema,
  register: ({ add }, { request }) => add("door", aiSdkDoor(request)),
});
