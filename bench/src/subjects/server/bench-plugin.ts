import { fileURLToPath } from "node:url";

/** For a configuration: an absolute path needs no installation. */
export const benchPlugin = fileURLToPath(new URL("../../plugins/bench-actors.js", import.meta.url));
