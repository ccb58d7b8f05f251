import { parseNetworkRule } from "@ambit/core";
import { z } from "zod";

/** Limits of what comes into workspaces and leaves them, for all runs. */
export const workspaceSettingsSchema = z.strictObject({
  maxEntries: z.int().positive().max(10_000_000).default(200_000).meta({
    description:
      "Files and folders of a workspace that are looked at for a run's `outputs`; with more, the run fails with `outputs_failed`.",
  }),
  maxBaseMiB: z.int().positive().max(1_048_576).default(1_024).meta({
    description:
      "MiB of the files at a run's start, which are kept on disk while it runs if it asks for a patch; with more, it fails before its agent is prompted.",
  }),
  maxSourceFiles: z.int().positive().max(10_000_000).default(50_000).meta({
    description: "Files of all `workspace.sources` of a request; with more, it fails with `source_failed`.",
  }),
  maxSourceMiB: z.int().positive().max(1_048_576).default(512).meta({
    description: "MiB of them, unpacked; with more, it fails with `source_failed`.",
  }),
  sourcesTimeoutMs: z.int().positive().max(2_147_483_647).default(300_000).meta({
    description:
      "Milliseconds to fetch all `workspace.sources` of a request and put them into its workspace.",
  }),
  allowedRanges: z
    .array(
      z.string().refine((text) => {
        const parsed = parseNetworkRule(text);
        return "rule" in parsed && parsed.rule.kind === "range" && parsed.rule.port === undefined;
      }, "must be an address or a range, without a port, such as 10.0.0.0/8"),
    )
    .max(64)
    .default([])
    .meta({
      description:
        "Private addresses that a host of `workspace.sources` or of a pull request's API may have, as addresses or ranges. Default: none, public addresses only.",
    }),
  signingKeyFile: z.string().min(1).max(4_096).optional().meta({
    description:
      "A file with an Ed25519 private key without a passphrase (`ssh-keygen -t ed25519 -N ''`), which signs the commits of `outputs.git`. Default: they aren't signed.",
  }),
  maxSnapshotMiB: z.int().positive().max(1_048_576).default(2_048).meta({
    description:
      "MiB of a snapshot of a sandbox's workspace and home; what is larger isn't kept, and fails with `snapshot_failed`.",
  }),
  maxSnapshotsPerProject: z.int().positive().max(10_000).default(20).meta({
    description: "Snapshots of sessions that each project may keep; one more fails with `snapshot_failed`.",
  }),
  snapshotTimeoutMs: z.int().positive().max(2_147_483_647).default(300_000).meta({
    description: "Milliseconds to pack a session's files into a snapshot, and to put them into another one.",
  }),
  snapshotMaxAgeMs: z.int().positive().max(31_536_000_000).default(604_800_000).meta({
    description: "Milliseconds that a snapshot of a session is kept; then it is deleted. Default: 7 days.",
  }),
  suspendTimeoutMs: z.int().positive().max(2_147_483_647).default(30_000).meta({
    description:
      "Milliseconds to pack an idle session's files when the server stops, and to put them into a new sandbox for the session's next run. Needs a store.",
  }),
  suspendedMaxAgeMs: z.int().positive().max(31_536_000_000).default(86_400_000).meta({
    description:
      "Milliseconds that such files are kept without a run of their session; then they are deleted. Default: 1 day.",
  }),
  encrypt: z.boolean().default(false).meta({
    description:
      "Whether files are encrypted before a plugin keeps them: AES-256-GCM, with a key derived from the one of `interactions.keyFile`. Files that were kept before aren't read any more.",
  }),
  earlierKeyFiles: z.array(z.string().min(1)).max(16).default([]).meta({
    description:
      "Files with earlier keys of `interactions.keyFile`: what was encrypted with them is still read. Each must exist.",
  }),
  setupTimeoutMs: z.int().positive().max(2_147_483_647).default(600_000).meta({
    description:
      "Milliseconds for all commands of `environment.setup` of a request and to pack what they made; with more, it fails with `setup_failed`.",
  }),
  preparedFolder: z.string().min(1).optional().meta({
    description:
      "Folder of prepared environments; processes of one user may share it. Default: `prepared` in the data folder.",
  }),
  maxPrepared: z.int().positive().max(100_000).default(100).meta({
    description:
      "Prepared environments that are kept, of all projects. Above that, the least recently used one of the project with the most bytes is deleted.",
  }),
  maxPreparedMiB: z.int().positive().max(16_777_216).default(10_240).meta({
    description: "MiB of all of them.",
  }),
  preparedUnusedMs: z.int().positive().default(2_592_000_000).meta({
    description: "Milliseconds without a use after which one is removed. Default: 30 days.",
  }),
  rebuildAfterMs: z.int().positive().default(604_800_000).meta({
    description:
      "Milliseconds after which one is prepared again, however often it is used, so that a setup that no longer works shows. Default: 7 days.",
  }),
  outputsTimeoutMs: z.int().positive().max(2_147_483_647).default(120_000).meta({
    description: "Milliseconds to read a workspace at the run's start, and again at its end.",
  }),
});
export type WorkspaceSettings = z.infer<typeof workspaceSettingsSchema>;
