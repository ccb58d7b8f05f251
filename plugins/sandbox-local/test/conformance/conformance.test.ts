import { readdir, rm } from "node:fs/promises";
import type { SandboxBackend } from "@ambit/core/plugin";
import { makeAuthority } from "@ambit/egress/credentials";
import { control } from "@ambit/sandbox-local/testing";
import { type Attack, bareControl, ChangingNames, type Control, CredentialHost } from "@ambit/testkit";
import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { afterAll } from "vitest";
import makeBackend, { makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
const names = new ChangingNames();
const { credentialHost, authorityFile } = await CredentialHost.openIn(dataFolder, makeAuthority);

/**
 * The control of `ambit verify`: an attack must work in the same jail without the mechanism that stops it. What that has
 * no place for is made by a bare process: as root, by names that change, and with credentials.
 */
function controlFor(backend: SandboxBackend): Control {
  const own = control(backend);
  if (own === undefined) throw new Error("the local sandbox has a control of its own");
  const bare = bareControl();
  const isBare = ({ asRoot, needs, needsNames, needsCredentials }: Attack) =>
    asRoot === true || needs !== undefined || needsNames === true || needsCredentials === true;
  return { ...own, open: (attack, ...rest) => (isBare(attack) ? bare : own).open(attack, ...rest) };
}

const backend = makeBackend(dataFolder, names.lookup, [authorityFile]);

describeSandboxBackend(() => backend, {
  control: controlFor(backend),
  names,
  credentialHost,
  runnerModule: new URL("backend.mjs", import.meta.url),
  // The runner keeps one folder; what a session had in it is gone with the session.
  remains: async () => {
    const runners = await readdir(dataFolder, { recursive: true });
    return runners.filter((path) => path.includes("kit-"));
  },
});

afterAll(() => credentialHost.close());
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
