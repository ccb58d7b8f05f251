import type { Command } from "@ambit/core/plugin";
import { commandOf } from "../../programs/run-program.js";
import type { Stage } from "../attack.js";

/** The secret is in its environment, its arguments, its memory and its files. */
export function holderCommand(
  { decoys }: Pick<Stage, "decoys">,
  role: NonNullable<Command["role"]> = "tool",
): Command {
  const command = commandOf(hold, { secret: decoys.secret }, { env: { HOLDER_SECRET: decoys.secret }, role });
  return { ...command, argv: [...command.argv, "holder-of-the-secret"] };
}

const hold = `
libc.prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)
remembered = bytearray(P["secret"].encode())
tmp, home = os.environ.get("TMPDIR", "/tmp"), os.environ.get("HOME", "/tmp")
kept = []
for folder in (tmp, home, "/dev/shm", "/tmp"):
    try:
        path = os.path.join(folder, "decoy-%d" % time.monotonic_ns())
        with open(path, "w") as file:
            file.write(P["secret"])
        kept.append(open(path))
    except OSError:
        continue
print(json.dumps({"tmp": tmp, "home": home, "above": os.path.dirname(os.path.dirname(tmp)) or "/tmp"}), flush=True)
sys.stdin.read()
`;
