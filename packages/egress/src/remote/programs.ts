import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { SandboxFailed } from "@ambit/core/plugin";

const read = new Map<string, Promise<Buffer>>();

function program(name: "gate" | "relay"): Promise<Buffer> {
  const known = read.get(name);
  if (known !== undefined) return known;
  const path = fileURLToPath(new URL(`../${name}.cjs`, import.meta.url));
  const text = readFile(path).catch((error: unknown) => {
    read.delete(name);
    throw new SandboxFailed(`The program of a ${name} isn't built: run \`npm run build\``, { cause: error });
  });
  read.set(name, text);
  return text;
}

/** The gate as one CommonJS file, for Node.js 22 or newer. Read once. @throws SandboxFailed when it wasn't bundled */
export const gateProgram = () => program("gate");
/** The relay, for Node.js 18 or newer. Read once. @throws as `gateProgram` */
export const relayProgram = () => program("relay");
