/** Where a repository says that its submodules are. */
export interface Submodule {
  readonly path: string;
  readonly url: string;
}

/**
 * The submodules of `.gitmodules`, as `git config --null --list` prints it. Other settings in it are ignored: `update`,
 * `branch`, `ignore`. Pure.
 */
export function submodulesIn(listed: string): readonly Submodule[] {
  const found = new Map<string, { path?: string; url?: string }>();
  for (const entry of listed.split("\0")) {
    const [, name, key, value] = /^submodule\.(.+)\.(path|url)\n(.*)$/s.exec(entry) ?? [];
    if (name === undefined || value === undefined) continue;
    const one = found.get(name) ?? {};
    found.set(name, key === "path" ? { ...one, path: value } : { ...one, url: value });
  }
  return [...found.values()].flatMap(({ path, url }) =>
    path === undefined || url === undefined ? [] : [{ path, url }],
  );
}

/**
 * The URL of a submodule, resolved against its repository's. Undefined for one that isn't on the same host and port: git
 * reaches no other. One over SSH is reached by HTTPS. Pure.
 */
export function submoduleUrl(url: string, parent: string): string | undefined {
  const [, sshHost, sshPath] = /^(?:ssh:\/\/)?git@([^:/]+)[:/](.+)$/.exec(url) ?? [];
  if (sshHost !== undefined) return submoduleUrl(`https://${sshHost}/${sshPath}`, parent);
  const isRelative = url.startsWith("./") || url.startsWith("../");
  const text = isRelative ? new URL(url, `${parent.replace(/\/$/, "")}/`).href : url;
  if (!URL.canParse(text)) return undefined;
  const { href, origin, username, password, search, hash } = new URL(text);
  if (origin !== new URL(parent).origin) return undefined;
  // As it was read: git must not read the same text as another host.
  return username + password + search + hash === "" ? href.replace(/\/$/, "") : undefined;
}
