import { type JsonLimits, JsonTooLarge, loopTurns, requireJsonWithin } from "@ambit/core/plugin";
import { isRecord, type JsonRecord } from "../json-reading.js";
import type { DriverLimits } from "../limits.js";

/** Characters that a parsed value counts as at least: a small one takes about as many bytes. */
const charactersPerValue = 64;

/** One JSON object of an agent. */
export interface Taken {
  readonly message: JsonRecord;
  /** What it takes in memory, in characters: its own, or 64 for each value if that is more. */
  readonly size: number;
}

/** The agent sent more than allowed. Its message completes "The agent …". */
export class MessageRefused extends Error {
  override readonly name = "MessageRefused";
}

/** The part of one agent's output that is held until its line ends. */
export interface HeldLine {
  /** @param characters held from now on. @throws MessageRefused */
  hold(characters: number): void;
  /** The agent's output is no longer read. */
  end(): void;
}

interface Held {
  characters: number;
  readonly refuse: (reason: MessageRefused) => void;
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
  line(refuse: (reason: MessageRefused) => void): HeldLine {
    const own: Held = { characters: 0, refuse };
    this.#lines.add(own);
    const change = (characters: number) => {
      this.#held += characters - own.characters;
      own.characters = characters;
    };
    return {
      hold: (characters) => {
        if (characters > this.#json.maxLength) throw this.#tooLong();
        change(characters);
        this.#makeRoom();
      },
      end: () => {
        change(0);
        this.#lines.delete(own);
      },
    };
  }

  /** See {@link loopTurns}. */
  turn(line: string): Promise<void> | undefined {
    return loopTurns.take(line.length);
  }

  /** A line as a message; undefined if it isn't one. @throws MessageRefused */
  take(line: string): Taken | undefined {
    // A banner or a log line that a program printed to stdout may look like anything, and isn't counted.
    if (!line.trimStart().startsWith("{")) return undefined;
    try {
      const { values } = requireJsonWithin(line, this.#json);
      const message: unknown = JSON.parse(line);
      return isRecord(message)
        ? { message, size: Math.max(line.length, values * charactersPerValue) }
        : undefined;
    } catch (error) {
      if (error instanceof JsonTooLarge) {
        throw new MessageRefused(`sent a message that ${error.message}`, { cause: error });
      }
      // Not JSON. The caller reports it.
      return undefined;
    }
  }

  /** The longest goes: an agent with short messages never makes room for one with long ones. */
  #makeRoom(): void {
    while (this.#held > this.#maxHeld) {
      let longest: Held | undefined;
      for (const one of this.#lines) {
        if (one.characters > (longest?.characters ?? 0)) longest = one;
      }
      if (longest === undefined) return;
      this.#held -= longest.characters;
      longest.characters = 0;
      this.#lines.delete(longest);
      longest.refuse(
        new MessageRefused(
          `was sending the longest message while those of all agents had more than ${this.#maxHeld.toLocaleString("en")} characters`,
        ),
      );
    }
  }

  #tooLong(): MessageRefused {
    return new MessageRefused(
      `sent a message that holds more than ${this.#json.maxLength.toLocaleString("en")} characters`,
    );
  }
}
