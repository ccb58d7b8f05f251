import { createHash } from "node:crypto";
import { lstat, readdir, readFile, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stateFolder } from "@ambit/core";
import { type Message, messageSchema } from "@ambit/core/contract";
import { codeOf } from "@ambit/core/plugin";
import { z } from "zod";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { replaceFile } from "../../replace-file.js";

/** Characters of a conversation as JSON. Beyond, the oldest messages go. */
const maxLength = 1_048_576;
const maxMessages = 200;
/** Folders whose conversations are kept: the latest. */
const maxFolders = 100;

const storedSchema = z.strictObject({ messages: z.array(messageSchema).max(maxMessages) });

/** What was said in the runs by hand of one folder, for `--resume`. Only this user can read it. */
export class Conversation {
  private constructor(
    readonly folder: string,
    readonly file: string,
  ) {}

  /** @param parent default: the data folder. */
  static async of(folder: string, parent = stateFolder()): Promise<Conversation> {
    const name = createHash("sha256")
      .update(await realpath(folder))
      .digest("hex");
    return new Conversation(folder, join(parent, "conversations", `${name}.json`));
  }

  /** @throws ConfigurationInvalid where there is none */
  async read(): Promise<readonly Message[]> {
    try {
      return storedSchema.parse(JSON.parse(await readFile(this.file, "utf8"))).messages;
    } catch (cause) {
      const reason =
        codeOf(cause) === "ENOENT"
          ? "has no earlier run"
          : `has an earlier run that can't be read (${this.file})`;
      throw new ConfigurationInvalid(this.folder, [`${reason}: leave --resume out`], { cause });
    }
  }

  /** Replaces what was kept before. */
  async keep(messages: readonly Message[]): Promise<void> {
    const latest = messages.slice(-maxMessages);
    let text = JSON.stringify({ messages: latest });
    while (text.length > maxLength && latest.length > 0) {
      latest.splice(0, Math.max(1, latest.length >> 2));
      text = JSON.stringify({ messages: latest });
    }
    await replaceFile(this.file, text);
    await this.#forgetOldest();
  }

  async #forgetOldest(): Promise<void> {
    const folder = dirname(this.file);
    const names = await readdir(folder);
    if (names.length <= maxFolders) return;
    const ages = await Promise.all(
      names.map(async (name) => {
        const stats = await lstat(join(folder, name)).catch(() => undefined);
        return { name, at: stats?.mtimeMs ?? 0 };
      }),
    );
    const oldest = ages.sort((one, other) => one.at - other.at).slice(0, names.length - maxFolders);
    for (const { name } of oldest) await rm(join(folder, name), { force: true });
  }
}
