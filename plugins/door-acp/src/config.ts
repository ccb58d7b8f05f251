import type { RunRequest } from "@ambit/client";
import { isJsonObject } from "@ambit/core/plugin";
import { z } from "zod";

export const configSchema = z.strictObject({
  request: z
    .custom<RunRequest>(isJsonObject, { error: "must be an object" })
    .refine(({ projectId }) => projectId === undefined, {
      path: ["projectId"],
      error: "leave it out: the editor's folder is the project",
    })
    .default({})
    .meta({ description: "What every run's request has, under what the command line and the user say." }),
});
export type AcpConfig = z.output<typeof configSchema>;
