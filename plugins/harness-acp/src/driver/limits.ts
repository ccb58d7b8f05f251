import {
  isJsonObject,
  type JsonLimits,
  type JsonObject,
  JsonTooLarge,
  parseCountedJson,
} from "@ambit/core/plugin";
import { z } from "zod";

/** The limits for every agent. docs/reliability.md is generated from these descriptions. */
export const driverLimitsSchema = z.strictObject({
  cancelMs: z.int().positive().max(600_000).default(4_000).meta({
    description:
      "Milliseconds to end a turn after `session/cancel`; after half of that time `$/cancel_request` is sent as well. Then it is killed.",
  }),
  closeMs: z.int().nonnegative().max(60_000).default(300).meta({
    description:
      "Milliseconds to store what it has and exit, for an agent that stores late; then it is killed.",
  }),
  listedMs: z.int().nonnegative().max(60_000).default(5_000).meta({
    description:
      "Milliseconds to ask for its tools before the first prompt, for an agent that doesn't wait for them itself.",
  }),
  lateMs: z.int().nonnegative().max(60_000).default(1_000).meta({
    description:
      "Milliseconds after its answer to a prompt in which an agent that isn't in order may still send the rest of that turn: a call without a result is waited for, and so is the next prompt.",
  }),
  messageCharacters: z
    .int()
    .min(65_536)
    .default(8_388_608)
    .meta({ description: "Characters of one message; a longer one fails the run." }),
  messageValues: z.int().min(1_000).default(50_000).meta({
    description:
      "Values of one message: lists, objects, keys, strings, numbers; more fail the run. Parsing 50,000 takes 5 to 20 ms.",
  }),
  heldCharacters: z.int().min(65_536).default(67_108_864).meta({
    description:
      "Characters of messages that haven't arrived completely, of all agents; past it the run with the longest fails.",
  }),
  bufferedCharacters: z.int().min(1_024).default(262_144).meta({
    description: "Characters of events that wait for a slow consumer; past it the agent's output isn't read.",
  }),
  openCalls: z
    .int()
    .positive()
    .max(100_000)
    .default(256)
    .meta({ description: "Tool calls without a result at one time; more fail the run." }),
  openCallCharacters: z.int().min(1_024).default(16_777_216).meta({
    description: "Characters of all of them together, at least 64 for each value; more fail the run.",
  }),
});
export type DriverLimits = Readonly<z.output<typeof driverLimitsSchema>>;

export const defaultDriverLimits: DriverLimits = driverLimitsSchema.parse({});

/** Characters that a parsed value counts as at least: a small one takes about as many bytes. */
const charactersPerValue = 64;

/** One JSON object of an agent. */
export interface Taken {
  readonly message: JsonObject;
  /** What it takes in memory, in characters: its own, or 64 for each value if that is more. */
  readonly size: number;
}

/** The agent sent more than allowed. Its message completes "The agent …". */
export class AgentMessageRefused extends Error {
  override readonly name = "AgentMessageRefused";
}

/** The part of one agent's output that is held until its line ends. */
interface HeldLine {
  /** @param characters held from now on. @throws AgentMessageRefused */
  hold(characters: number): void;
  /** The agent's output is no longer read. */
  end(): void;
}

interface Held {
  characters: number;
  readonly refuse: (reason: AgentMessageRefused) => void;
}

/**
 * Takes in the messages of all agents. Bounds what one may cost, and what those hold together that haven't arrived
 * completely.
 */
export class MessageIntake {
  readonly #json: JsonLimits;
  readonly #maxHeld: number;
  readonly #lines = new Set<Held>();
  #held = 0;

  constructor(limits: Pick<DriverLimits, "messageCharacters" | "messageValues" | "heldCharacters">) {
    this.#json = {
      maxLength: limits.messageCharacters,
      maxValues: limits.messageValues,
      // The runner refuses less than that within an event.
      maxDepth: 256,
    };
    this.#maxHeld = limits.heldCharacters;
  }

  /** One agent's output. @param refuse called when it has to make room for the others. */
  line(refuse: (reason: AgentMessageRefused) => void): HeldLine {
    const line: Held = { characters: 0, refuse };
    this.#lines.add(line);
    const change = (characters: number) => {
      this.#held += characters - line.characters;
      line.characters = characters;
    };
    return {
      hold: (characters) => {
        if (characters > this.#json.maxLength) throw this.#tooLong();
        change(characters);
        this.#makeRoom();
      },
      end: () => {
        change(0);
        this.#lines.delete(line);
      },
    };
  }

  /** A line as a message; undefined if it isn't one. @throws AgentMessageRefused */
  take(line: string): Taken | undefined {
    // A banner or a log line that a program printed to stdout may look like anything, and isn't counted.
    if (!line.trimStart().startsWith("{")) return undefined;
    try {
      const { value, values } = parseCountedJson(line, this.#json);
      return isJsonObject(value)
        ? { message: value, size: Math.max(line.length, values * charactersPerValue) }
        : undefined;
    } catch (error) {
      // What isn't JSON is reported by the caller.
      if (error instanceof SyntaxError) return undefined;
      if (!(error instanceof JsonTooLarge)) throw error;
      throw new AgentMessageRefused(`sent a message that ${error.message}`, { cause: error });
    }
  }

  /** The longest goes: an agent with short messages never makes room for one with long ones. */
  #makeRoom(): void {
    while (this.#held > this.#maxHeld) {
      let longest: Held | undefined;
      for (const line of this.#lines) {
        if (line.characters > (longest?.characters ?? 0)) longest = line;
      }
      if (longest === undefined) return;
      this.#held -= longest.characters;
      longest.characters = 0;
      this.#lines.delete(longest);
      longest.refuse(
        new AgentMessageRefused(
          `was sending the longest message while those of all agents had more than ${this.#maxHeld.toLocaleString("en")} characters`,
        ),
      );
    }
  }

  #tooLong(): AgentMessageRefused {
    return new AgentMessageRefused(
      `sent a message that holds more than ${this.#json.maxLength.toLocaleString("en")} characters`,
    );
  }
}
