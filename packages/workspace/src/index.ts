/** What comes into a run's workspace, and what leaves it. */

export type { OpenDownload, OpenedDownload } from "./download.js";
export type { SendToApi } from "./forge/api.js";
export { settingsOf } from "./git/config.js";
export { signerOf } from "./git/signing.js";
export { isGitFolder } from "./inside/git-folder.js";
export { globsOf } from "./inside/globs.js";
export { listFolder, readFile, type WorkspaceFile, type WorkspaceFolder } from "./look.js";
export { collect } from "./outputs/collect.js";
export { KeptOutputs } from "./outputs/kept-outputs.js";
export type { OutputsManifest } from "./outputs/manifest.js";
export { OutputsRetention } from "./outputs/retention.js";
export { RunOutputs } from "./outputs/run-outputs.js";
export { type WorkspaceSettings, workspaceSettingsSchema } from "./settings.js";
export { packSnapshot, unpackSnapshot } from "./snapshot/archive.js";
export { Snapshots } from "./snapshots/snapshots.js";
export type { LocalEntry } from "./sources/local.js";
export { Spool } from "./spool.js";
export type { Beginning, BeginOptions, Filled, FillOptions } from "./workspaces.js";
export { Workspaces } from "./workspaces.js";
