import { fileURLToPath } from "node:url";

/** As a configuration names it: an absolute path needs no installation. */
export const benchPlugin = fileURLToPath(new URL("../../plugins/bench-actors.js", import.meta.url));
