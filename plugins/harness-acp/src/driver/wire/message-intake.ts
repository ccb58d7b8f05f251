import { type JsonLimits, JsonTooLarge, parseCountedJson } from "@ambit/core/plugin";
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
export class AgentMessageRefused extends Error {
  override readonly name = "AgentMessageRefused";
}

/** The part of one agent's output that is held until its line ends. */
export interface HeldLine {
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
      return isRecord(value)
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
      for (const one of this.#lines) {
        if (one.characters > (longest?.characters ?? 0)) longest = one;
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
