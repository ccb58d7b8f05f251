import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";
import { folderBlobs } from "./folder-blobs.js";

export { folderBlobs } from "./folder-blobs.js";

const configSchema = z.strictObject({
  /**
   * The folder, created if it doesn't exist; one for each store of runs, since files whose run isn't in the store are
   * deleted. Default: `AMBIT_BLOBS_FOLDER`, else `blobs` in the runner's data folder.
   */
  folder: z.string().min(1).optional(),
});
export type FolderBlobsConfig = z.output<typeof configSchema>;

export default definePlugin({
  name: "blobs-folder",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("blobs", folderBlobs(config)),
});
