/**
 * `npm run build:native`: compiles the C programs that run inside sandboxes, for both machines, with Debian's compilers. The
 * binaries are committed beside their sources, and test/repository compiles them again and compares.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const here = fileURLToPath(new URL(".", import.meta.url));

/** By Node's names of machines. */
const compilers = { x64: "x86_64-linux-gnu-gcc", arm64: "aarch64-linux-gnu-gcc" };

/** What made the committed binaries: another version may write other bytes for the same source. */
export const compilerVersion = "12.2.0";
export const compilerPackages = "gcc gcc-aarch64-linux-gnu";

/** @typedef {keyof typeof compilers} Machine */

/** The sources, and the machines for which each is compiled. @type {readonly { source: string, machines: readonly Machine[] }[]} */
const programs = [
  { source: "packages/attacks/native/system-calls.c", machines: ["x64", "arm64"] },
  { source: "packages/attacks/native/foreign-call.c", machines: ["x64"] },
  { source: "plugins/sandbox-kubernetes/native/enter.c", machines: ["x64", "arm64"] },
  { source: "plugins/sandbox-local/native/relay.c", machines: ["x64", "arm64"] },
];

/** Each binary by its path from the root, compiled now. */
export function compileAll() {
  const folder = mkdtempSync(join(tmpdir(), "ambit-native-"));
  try {
    return new Map(
      programs.flatMap(({ source, machines }) =>
        machines.map((machine) => [source.replace(/\.c$/, `-${machine}`), compile(source, machine, folder)]),
      ),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether both compilers are here, in the version whose bytes are compared. */
export function hasCompilers() {
  return Object.values(compilers).every((compiler) => {
    try {
      return execFileSync(compiler, ["-dumpfullversion"], { encoding: "utf8" }).trim() === compilerVersion;
    } catch {
      return false;
    }
  });
}

/**
 * @param {string} source
 * @param {Machine} machine
 * @param {string} folder for what the compiler writes
 */
function compile(source, machine, folder) {
  const output = join(folder, "program");
  const argv = [
    ...["-std=c11", "-Os", "-Wall", "-Wextra", "-Werror"],
    ...[
      "-ffreestanding",
      "-fno-pic",
      "-fno-stack-protector",
      "-fno-asynchronous-unwind-tables",
      "-fno-ident",
    ],
    // What a distribution may have as its default.
    ...(machine === "x64"
      ? ["-fcf-protection=none", "-mno-red-zone"]
      : ["-mbranch-protection=none", "-mgeneral-regs-only"]),
    ...["-nostdlib", "-static", "-no-pie", "-s", "-Wl,--build-id=none", "-Wl,-z,max-page-size=0x10000"],
    ...["-Wl,--fatal-warnings", `-Wl,--script=${join(here, "program.ld")}`, "-I", here],
    ...["-o", output, source],
  ];
  execFileSync(compilers[machine], argv, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  return withoutSectionHeaders(readFileSync(output));
}

/**
 * Nothing but what is loaded: the file ends where its segment does, where a table can follow. binutils can leave out the section
 * headers itself from version 2.41 (`-z nosectionheader`).
 * @param {Buffer} program an ELF file of 64 bits, little-endian
 */
function withoutSectionHeaders(program) {
  const segments = Number(program.readBigUInt64LE(0x20)); // e_phoff
  const segmentBytes = Number(program.readBigUInt64LE(segments + 0x20)); // p_filesz of the first
  const cut = Buffer.from(program.subarray(0, segmentBytes));
  cut.fill(0, 0x28, 0x30); // e_shoff
  cut.fill(0, 0x3a, 0x40); // e_shentsize, e_shnum, e_shstrndx
  return cut;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!hasCompilers())
    console.warn(`The compilers aren't version ${compilerVersion}: CI, which has it, may write other bytes.`);
  for (const [path, program] of compileAll()) {
    writeFileSync(join(root, path), program, { mode: 0o755 });
    console.log(`${path}: ${program.length} bytes`);
  }
}
