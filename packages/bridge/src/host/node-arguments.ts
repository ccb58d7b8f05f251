/**
 * Node's arguments to run a CommonJS program that standard input begins with: it takes no separate upload. The path that
 * follows is the program's name, in a folder that is created. Runs on Node.js 18.
 *
 * @param isKept whether the program becomes that file before it runs, whole or not at all. Else no file of it is in the sandbox.
 */
export function nodeArgumentsFromInput(
  program: Uint8Array,
  { isKept = false } = {},
): readonly ["-e", string] {
  return ["-e", `(${readAndRun})(${program.length}, ${isKept})`];
}

/** Reads exactly the program: what follows in standard input is for it. */
const readAndRun = `(size, isKept) => {
  const fs = require("fs"), path = process.argv[1], bytes = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    let length;
    try { length = fs.readSync(0, bytes, at, size - at); }
    catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      continue;
    }
    if (length === 0) process.exit(1);
    at += length;
  }
  fs.mkdirSync(require("path").dirname(path), { recursive: true, mode: 0o755 });
  if (isKept) {
    fs.writeFileSync(path + ".part", bytes, { mode: 0o644 });
    fs.renameSync(path + ".part", path);
  }
  require("vm").runInThisContext("(require => {" + bytes + "\\n})", { filename: path })(require);
}`.replaceAll(/\s*\n\s*/g, " ");
