import { readdir, rm } from "node:fs/promises";
import { makeAuthority } from "@ambit/egress/credentials";
import { ChangingNames, CredentialHost } from "@ambit/testkit";
import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { afterAll } from "vitest";
import makeBackend, { makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
const names = new ChangingNames();
const { credentialHost, authorityFile } = await CredentialHost.openIn(dataFolder, makeAuthority);

describeSandboxBackend(() => makeBackend(dataFolder, names.lookup, [authorityFile]), {
  names,
  credentialHost,
  runnerModule: new URL("backend.mjs", import.meta.url),
  // The runner keeps one folder of its own; what a session had in it is gone with the session.
  remains: async () => {
    const runners = await readdir(dataFolder, { recursive: true });
    return runners.filter((path) => path.includes("kit-"));
  },
});

afterAll(() => credentialHost.close());
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
