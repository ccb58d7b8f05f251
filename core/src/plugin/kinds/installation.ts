/** A program that a plugin needs and can install, pinned to a version and checked against its digests. */
export interface Installation {
  /** As in messages: "Claude Code". */
  readonly title: string;
  /** The packages that `install` brings, with their exact versions. */
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  /** What is on disk now; undefined where it isn't installed. */
  installed(): { readonly version: string; readonly path: string } | undefined;
  /**
   * Installs it, or leaves what was there before.
   * @param progress takes lines for people.
   * @throws HarnessFailed with what to do about it.
   */
  install(progress: (line: string) => void): Promise<{ readonly path: string }>;
}
