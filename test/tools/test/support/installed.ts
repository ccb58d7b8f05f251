import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The folder in whose `node_modules` npm installed the agents: the repository's root. */
export const [folder = ""] = require
  .resolve("@agentclientprotocol/codex-acp/package.json")
  .split("/node_modules/");
