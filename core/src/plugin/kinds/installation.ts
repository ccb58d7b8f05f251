/** A program that a plugin needs and can install, pinned to a version and checked against its digests. */
export interface Installation {
  /** As in messages: "Claude Code". */
  readonly title: string;
  /** The packages that `install` brings, with their exact versions. */
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  /**
   * The installed version, and the one that the plugin was tested with; undefined if it isn't installed. Where that is an adapter,
   * `agent` is the agent behind it, with its own version, and the tested one unless the adapter's decides about it.
   */
  installed():
    | {
        readonly version: string;
        readonly tested: string;
        readonly path: string;
        readonly agent?: { readonly name: string; readonly version: string; readonly tested?: string };
      }
    | undefined;
  /**
   * Installs it, or leaves the earlier version in place.
   * @param progress receives lines to show.
   * @throws HarnessFailed with what to do about it.
   */
  install(progress: (line: string) => void): Promise<{ readonly path: string }>;
}
