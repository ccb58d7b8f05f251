/** What comes into a run's workspace, and what leaves it. */

export { collect } from "./collect.js";
export type { OpenDownload, OpenedDownload } from "./download.js";
export type { SendToApi } from "./forge/api.js";
export { settingsOf } from "./git/repository.js";
export { signerOf } from "./git/signing.js";
export { globsOf, isGitFolder } from "./inside/paths.js";
export { listFolder, readFile, type WorkspaceFile, type WorkspaceFolder } from "./look.js";
export { KeptOutputs, type OutputsManifest } from "./outputs/kept-outputs.js";
export { OutputsRetention } from "./outputs/retention.js";
export { RunOutputs } from "./outputs/run-outputs.js";
export { type WorkspaceSettings, workspaceSettingsSchema } from "./settings.js";
export { packSnapshot, unpackSnapshot } from "./snapshots/archive.js";
export { Snapshots } from "./snapshots/snapshots.js";
export type { LocalEntry } from "./sources/local.js";
export { Spool } from "./spool.js";
export { type OpenedTerminal, openTerminal } from "./terminal.js";
export type { Beginning, BeginOptions, Filled, FillOptions } from "./workspaces.js";
export { Workspaces } from "./workspaces.js";
