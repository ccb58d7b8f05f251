// needs: python
import { readdir, rm } from "node:fs/promises";
import { makeAuthority } from "@ambit/egress/credentials";
import { type Attack, bareControl, ChangingNames, type Control, CredentialHost } from "@ambit/testkit";
import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { afterAll } from "vitest";
import { control } from "../weakened/control.ts";
import makeBackend, { configOf, makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
const names = new ChangingNames();
const { credentialHost, authorityFile } = await CredentialHost.openIn(dataFolder, makeAuthority);

/**
 * An attack must work in the same jail without the mechanism that stops it. What that has no place for is made by a bare
 * process: as root, by names that change, and with credentials.
 */
function ownControl(): Control {
  const config = configOf(dataFolder, [authorityFile]);
  const own = control({ config, dataFolder, lookup: names.lookup });
  const bare = bareControl();
  const isBare = ({ asRoot, needs, needsNames, needsCredentials }: Attack) =>
    asRoot === true || needs !== undefined || needsNames === true || needsCredentials === true;
  return { ...own, open: (attack, ...rest) => (isBare(attack) ? bare : own).open(attack, ...rest) };
}

const backend = makeBackend(dataFolder, names.lookup, [authorityFile]);

describeSandboxBackend(() => backend, {
  control: ownControl(),
  names,
  credentialHost,
  // The runner keeps one folder; what a session had in it is gone with the session.
  remains: async () => {
    const runners = await readdir(dataFolder, { recursive: true });
    return runners.filter((path) => path.includes("kit-"));
  },
});

afterAll(() => credentialHost.close());
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
