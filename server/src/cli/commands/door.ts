import { stdin, stdout } from "node:process";
import { Readable, Writable } from "node:stream";
import { inOffer } from "@ambit/core";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { openApi } from "../../http/listen.js";
import { UserFolders } from "../by-hand/in-place/in-place.js";
import { keyVariables, modelConnectionFrom } from "../by-hand/model-connection.js";
import { exitCodes } from "../exit-codes.js";
import { openForCommand } from "../open-command.js";
import { EndingSignals, exitCodeOfSignal } from "../signals.js";

/** `ambit door`: serves one client on standard input and output, until it leaves or a signal arrives. */
export async function door(name: string, words: readonly string[], overrides: Overrides): Promise<number> {
  // The plugins' variables are taken from this process's; a model's keys stay for its requests.
  const variables = { ...process.env };
  const environment = takeEnvironment(process.env);
  const folders = new UserFolders(`ambit ${name} …`);
  const signals = new EndingSignals();
  const ambit = await openForCommand(overrides, {
    environment,
    workspaceFolderOf: (request) => folders.folderOf(request),
  });
  const { doors } = ambit.registry;
  const chosen = doors.find((each) => each.name === name);
  if (chosen?.stdio === undefined) {
    const names = doors.filter(({ stdio }) => stdio !== undefined).map((each) => each.name);
    const loaded = names.length === 0 ? "none is loaded" : `loaded are ${names.join(", ")}`;
    const fix = `load its plugin: { "extends": "defaults", "plugins": ["@ambit/door-${name}"] }`;
    throw new ConfigurationInvalid("plugins", [`no door '${name}' serves standard input, ${loaded}: ${fix}`]);
  }
  const api = await openApi(ambit);
  const ending = new AbortController();
  const { fetch } = api;
  const call = {
    input: Readable.toWeb(stdin),
    output: Writable.toWeb(stdout),
    arguments: words,
    fetch,
    user: {
      openFolder: (path: string) => folders.open(path),
      modelConnection: (harness: string | undefined, model: string | undefined) => ({
        connection: modelConnectionFrom(variables, harness, model),
        variables: harness === "demo" ? [] : keyVariables(harness, model),
      }),
    },
    signal: ending.signal,
  };
  try {
    const served = inOffer(chosen, async () => chosen.stdio?.(call));
    const signal = await Promise.race([served.then(() => undefined), signals.next()]);
    if (signal === undefined) return exitCodes.ok;
    ending.abort();
    await Promise.race([served, signals.next()]).catch(() => undefined);
    return exitCodeOfSignal(signal);
  } finally {
    await api.close();
  }
}
