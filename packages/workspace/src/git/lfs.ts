/**
 * Arguments that make git LFS talk to the repository's own server, and download everything, whatever the repository or an agent
 * wrote to `.lfsconfig` (git-lfs-config, "LFSCONFIG"). Pure.
 */
export function lfsSettings(url: string): readonly string[] {
  const server = `${url.replace(/\.git$/, "")}.git/info/lfs`;
  return [
    `lfs.url=${server}`,
    `lfs.pushurl=${server}`,
    `remote.origin.lfsurl=${server}`,
    "lfs.locksverify=false",
    "lfs.basictransfersonly=true",
    "lfs.allowincompletepush=false",
    "lfs.fetchinclude=",
    "lfs.fetchexclude=",
    "lfs.skipdownloaderrors=false",
    // Its default is 8, which takes 36 s for a content that the host refuses.
    "lfs.transfer.maxretries=3",
    "filter.lfs.process=git-lfs filter-process",
    "filter.lfs.smudge=git-lfs smudge -- %f",
    "filter.lfs.required=true",
  ].flatMap((setting) => ["-c", setting]);
}

/** Bytes of a pointer, at most (git-lfs docs/spec.md). */
export const maxPointerBytes = 1_024;

/** What git has in place of a content. Pure. */
export function lfsPointer({ sha256, size }: { readonly sha256: string; readonly size: number }): string {
  return `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${size}\n`;
}

/** Where git LFS keeps a content, below `.git`. Pure. */
export function lfsPath(sha256: string): string {
  return `lfs/objects/${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}`;
}

/** Whether a content is a pointer already, as where a workspace's contents weren't downloaded. Pure. */
export function isLfsPointer(text: string): boolean {
  return /^version https:\/\/(?:git-lfs\.github\.com|hawser\.github\.com|git-media\.io)\/spec\/v1\n(?:ext-\d-[^\n]*\n)*oid sha256:[0-9a-f]{64}\nsize \d+\n$/.test(
    text,
  );
}
