import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { seccompProfile } from "@ambit/backend-kit";
import { temporaryFolder } from "../../machine/temporary-folder.js";

/**
 * `docker run --rm` with the restrictions of Ambit's containers.
 *
 * @param command what the container runs.
 */
export async function dockerRun(
  { socket, image }: { readonly socket: string; readonly image: string },
  runtime: string,
  command: readonly string[],
) {
  const folder = await temporaryFolder();
  const profile = join(folder.path, "seccomp.json");
  await writeFile(profile, seccompProfile);
  const scratch = "rw,exec,nosuid,nodev,mode=1777,size=256m";
  const kept = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];
  const argv = [
    ...[
      "docker",
      "run",
      "--rm",
      "--runtime",
      runtime,
      "--network",
      "none",
      "--ipc",
      "private",
      "--read-only",
    ],
    ...["--cap-drop", "ALL", ...kept.flatMap((name) => ["--cap-add", name])],
    ...["--security-opt", "no-new-privileges", "--security-opt", `seccomp=${profile}`],
    ...["--tmpfs", `/tmp:${scratch}`, "--tmpfs", `/var/tmp:${scratch}`, "--shm-size", "256m"],
    ...["--pids-limit", "4096", "--mount", "type=volume,dst=/ambit,volume-nocopy", "--log-driver", "none"],
    ...[image, ...command],
  ];
  const env = { PATH: process.env.PATH ?? "", DOCKER_HOST: `unix://${socket}` };
  return { argv, env, close: () => folder[Symbol.asyncDispose]() };
}
