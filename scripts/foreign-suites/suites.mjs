/**
 * The suites: how a shell starts each, and what its output says. A suite's results go to stdout, and what it prints for people to stderr.
 *
 * @typedef {"passed" | "failed" | "skipped"} Outcome
 * @typedef {ReadonlyMap<string, Outcome>} Results by the test's name, which begins with its module or package
 *
 * @typedef {object} Suite
 * @property {string} id as on the command line
 * @property {string} name
 * @property {string} parts what of it runs
 * @property {(programs: string) => string} version installs in this folder, which every user may read, what the host doesn't have;
 * it throws an Error that says how to install the rest
 * @property {() => readonly string[]} mounts paths outside /usr and that folder that its programs are in
 * @property {(programs: string, tests?: readonly string[]) => string} script for sh, in an empty folder that can be written. Without
 * tests: all
 * @property {(stdout: string) => Results} resultsOf
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** @param {string} program @param {readonly string[]} args @param {string} install */
function printed(program, args, install) {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch (cause) {
    throw new Error(`"${[program, ...args].join(" ")}" fails: ${install}`, { cause });
  }
}

/** @param {string} word */
const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`;
/** @param {Iterable<string>} words */
const unique = (words) => [...new Set(words)].toSorted();

const python = "/usr/bin/python3";

/** @type {Suite} */
const cpython = {
  id: "cpython",
  name: "CPython",
  parts: "everything (`python3 -m test`) that needs no resource such as a network, a display or gigabytes",
  version: () =>
    printed(
      python,
      ["-c", "import sys, test.test_os, test.test_socket; print(sys.version.split()[0])"],
      "install the package libpython3-testsuite",
    ),
  mounts: () => [],
  script: (_programs, tests = []) => {
    const modules = unique(tests.map((test) => test.split(".", 1).join("")));
    const options = "-j2 --timeout 900 --junit-xml results.xml";
    return `${python} -m test ${options} ${modules.join(" ")} >&2; cat results.xml`;
  },
  resultsOf: junitResults,
};

/**
 * Without a name server nothing is asked for outside of the host: `-short` leaves such tests out.
 */
const goPackages = [
  "archive/tar",
  "archive/zip",
  "internal/poll",
  "internal/syscall/unix",
  "io/fs",
  "io/ioutil",
  "net",
  "os",
  "os/exec",
  "os/signal",
  "os/user",
  "path/filepath",
  "sync",
  "syscall",
  "time",
];

const goRoot = () =>
  printed("go", ["env", "GOROOT"], "install Go with its sources, such as the package golang-go");

/** @type {Suite} */
const go = {
  id: "go",
  name: "Go",
  parts: `\`go test -short\` of ${goPackages.join(", ")}`,
  version: () => {
    const folder = goRoot();
    if (!existsSync(join(folder, "src/os/os_test.go")))
      throw new Error(`${folder} has no sources: install them, such as the package golang-src`);
    return printed("go", ["env", "GOVERSION"], "install Go").replace(/^go/, "");
  },
  mounts: () => [goRoot()].filter((folder) => !folder.startsWith("/usr/")),
  script: (_programs, tests) => {
    const command = `${goRoot()}/bin/go test -short -json -count=1 -timeout 30m`;
    const environment = "export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off";
    if (tests === undefined) return `${environment}; ${command} ${goPackages.join(" ")}`;
    const ofPackage = Map.groupBy(tests, (test) => test.slice(0, test.indexOf(":")));
    return [
      environment,
      ...[...ofPackage].map(([name, of]) => {
        const topLevel = unique(of.map((test) => test.slice(name.length + 1).replace(/\/.*/s, "")));
        // The package itself failed: its tests didn't get anywhere.
        const some = topLevel.includes("") ? "" : `-run ${quoted(`^(${topLevel.join("|")})$`)}`;
        return `${command} ${some} ${name}`;
      }),
    ].join("; ");
  },
  resultsOf: goResults,
};

const pjdfstestVersion = "0.2.2";

/** Two accounts, which must exist: an ordinary user's tests never change to them. */
const pjdfstestSettings = `[features]
posix_fallocate = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [["root", "root"], ["root", "root"]]
`;

/** @type {Suite} */
const pjdfstest = {
  id: "pjdfstest",
  name: "pjdfstest, in Rust",
  parts: "everything that an ordinary user can run",
  version: (programs) => {
    const options = ["--version", pjdfstestVersion, "--locked", "--root", programs];
    printed("cargo", ["install", "pjdfstest", ...options], "install Rust 1.85 or newer");
    return pjdfstestVersion;
  },
  mounts: () => [],
  script: (programs, tests = []) =>
    [
      `printf %s ${quoted(pjdfstestSettings)} > settings.toml`,
      `${programs}/bin/pjdfstest --configuration-file settings.toml --path . ${tests.map(quoted).join(" ")}`,
    ].join("; "),
  resultsOf: pjdfstestResults,
};

export const suites = [cpython, go, pjdfstest];

/**
 * The tests of a JUnit file as `python -m test` writes it.
 *
 * @param {string} xml
 * @returns {Results}
 */
export function junitResults(xml) {
  /** @type {Map<string, Outcome>} */
  const results = new Map();
  for (const [, attributes = "", , content = ""] of xml.matchAll(
    /<testcase\b([^>]*?)(\/>|>(.*?)<\/testcase>)/gs,
  )) {
    const name = /\bname="([^"]*)"/.exec(attributes)?.[1];
    if (name === undefined) continue;
    const isFailed = /<(failure|error)\b/.test(content);
    const isSkipped = /<skipped\b/.test(content) || /\bresult="skipped"/.test(attributes);
    results.set(name.replace(/^test\./, ""), isFailed ? "failed" : isSkipped ? "skipped" : "passed");
  }
  return results;
}

/** @type {Readonly<Record<string, Outcome>>} */
const goOutcomes = { pass: "passed", fail: "failed", skip: "skipped" };

/**
 * The tests of `go test -json`; a package that fails without one of its tests is a test without a name.
 *
 * @param {string} lines
 * @returns {Results}
 */
export function goResults(lines) {
  /** @type {Map<string, Outcome>} */
  const results = new Map();
  for (const line of lines.split("\n").filter((each) => each.startsWith("{"))) {
    const { Action: action, Package: name, Test: test } = JSON.parse(line);
    const outcome = goOutcomes[action];
    if (outcome !== undefined && (test !== undefined || outcome === "failed"))
      results.set(`${name}:${test ?? ""}`, outcome);
  }
  return results;
}

/** @type {Readonly<Record<string, Outcome>>} */
const pjdfstestOutcomes = { ok: "passed", FAILED: "failed", skipped: "skipped" };

/**
 * @param {string} lines
 * @returns {Results}
 */
export function pjdfstestResults(lines) {
  /** @type {Map<string, Outcome>} */
  const results = new Map();
  for (const [, name = "", word = ""] of lines.matchAll(/^(\w+(?:::\w+)+)\s+(ok|FAILED|skipped)\s*$/gm)) {
    const outcome = pjdfstestOutcomes[word];
    if (outcome !== undefined) results.set(name, outcome);
  }
  return results;
}
