import { readdir, rm } from "node:fs/promises";
import { afterAll } from "vitest";
import { ChangingNames, describeSandboxBackend } from "../../src/index.js";
import makeBackend, { makeDataFolder } from "../backends/local.mjs";

const dataFolder = makeDataFolder();
const names = new ChangingNames();

describeSandboxBackend(() => makeBackend(dataFolder, names.lookup), {
  names,
  runnerModule: new URL("../backends/local.mjs", import.meta.url),
  // The runner keeps one folder of its own; what a session had in it is gone with the session.
  remains: async () => {
    const runners = await readdir(dataFolder, { recursive: true });
    return runners.filter((path) => path.includes("kit-"));
  },
});

afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
