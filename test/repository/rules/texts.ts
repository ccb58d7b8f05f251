import type { SourceFile } from "./source-file.js";

/** Unusual names of limits. Settings of earlier versions keep theirs. */
const oddLimit = /\b(?:most|longest|fewest|least|shortest)[A-Z]\w*(?!\w*:\s*")/g;

/** A limit is `max…`, `min…` or `…TimeoutMs`. */
export function oddNames(files: readonly SourceFile[]): string[] {
  const sources = files.filter(({ path }) => path.endsWith(".ts"));
  return matches(sources, oddLimit, "is an odd name: use max…, min… or …TimeoutMs");
}

const literalSpread = /\.\.\.\{/g;

/** A literal spread into another one only saves lines. */
export function literalSpreads(files: readonly SourceFile[]): string[] {
  return matches(files, literalSpread, "spreads a literal object: write its members themselves");
}

/** Homes that exist only inside a sandbox, and are documented there. */
const sandboxHomes = "agent|sandbox";
const machinePath = new RegExp(
  String.raw`(?<![\w.)\]}~/-])/(?:root|work|(?:home|Users)/(?!(?:${sandboxHomes})/)[\w.-]+)/`,
  "g",
);

/** A path of one machine doesn't work elsewhere, and reveals its owner. */
export function machinePaths(files: readonly SourceFile[]): string[] {
  return matches(files, machinePath, "is a path of one machine");
}

const registryHost = new RegExp(
  [
    String.raw`\bregistry\.(?:npmjs|yarnpkg|npmmirror)\.\w+`,
    String.raw`\b(?:npm\.pkg\.github\.com|pypi\.org|files\.pythonhosted\.org|[\w-]+\.jfrog\.io)\b`,
    String.raw`https?://[^\s"'\`/]*\b(?:registry|artifactory|nexus|mirrors?)\b[\w.:-]*`,
    '"resolved": "[a-z+]+:[^"]*',
    String.raw`^(?:@[\w-]+:)?registry\s*=.*`,
  ].join("|"),
  "gim",
);

/** A registry's host in the lockfile would override the user's own registry. */
export function registryHosts(files: readonly SourceFile[]): string[] {
  return matches(files, registryHost, "names a package registry");
}

const credential =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----|\b(?:AKIA[A-Z\d]{16}|gh[pousr]_[A-Za-z\d]{36}|github_pat_\w{50,}|npm_[A-Za-z\d]{36}|sk-ant-[\w-]{80,}|AIza[\w-]{35}|dtn_[a-f\d]{64})\b|_authToken\s*=\s*[^\s$]+/g;

/** Only formats of real providers' keys, which a test's made-up secret doesn't have. */
export function credentials(files: readonly SourceFile[]): string[] {
  return matches(files, credential, "looks like a credential").map((line) =>
    line.replace(/"(.{8})[^"]*"/, '"$1…"'),
  );
}

function matches(files: readonly SourceFile[], pattern: RegExp, complaint: string): string[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map((match) => {
      const line = text.slice(0, match.index).split("\n").length;
      return `${path}:${line} "${match[0]}" ${complaint}`;
    }),
  );
}
