import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import type { InteractionPayload } from "@ambit/core/contract";
import { canonicalJson } from "../../json-values.js";
import type { InteractionKind, UserAnswer } from "../values/answer.js";
import { type Call, type CallSubject, comparable } from "../values/call.js";
import { issuedPrefix } from "../values/unsettled.js";

/** What a user is asked about. Two servers' tools of one name are two tools. */
export interface QuestionSubject extends Pick<CallSubject, "origin" | "name" | "input"> {
  readonly kind: InteractionKind;
}

/** A question of a run to its user. */
export interface Question<Value> extends QuestionSubject {
  /** The call that waits for the answer: it is announced before the question. Undefined: it isn't about a call. */
  readonly call?: Call;
  /** What the user reads of it besides name and input. */
  readonly details?: InteractionPayload | undefined;
  /** Aborts when the agent takes the question back. Default: never. */
  readonly withdrawn?: AbortSignal | undefined;
  /** What the answer means, and what its event says of it. */
  read(answer: UserAnswer): { readonly value: Value; readonly response: InteractionPayload };
}

/** The owner of a conversation. */
export interface ConversationName {
  readonly project: string | undefined;
  readonly session: string | undefined;
}

/** An id that a runner with this key issued for a question, parsed. */
export interface IssuedId {
  /** Names the run that asked. */
  readonly turn: string;
  /** Names kind, tool and arguments; see `QuestionIds.digest`. */
  readonly call: string;
}

const sizes = { turn: 16, nonce: 5, call: 12, mac: 12 } as const;
const form = new RegExp(`^${issuedPrefix}[A-Za-z0-9_-]{60}$`);

/**
 * The ids under which calls that wait for a user are announced. Such an id proves, in any message that carries it back,
 * that a runner with this key asked about just that call in just that conversation; so resumption needs no state.
 *
 * 64 characters: `ask_`, then in base64url the turn (16 bytes), a nonce (5), a keyed digest of the call (12), and a MAC
 * over these three with project and session (12).
 */
export class QuestionIds {
  constructor(
    private readonly key: KeyObject,
    private readonly conversation: ConversationName,
    /** Names this run, 16 random bytes in hex. It is the session of a run that names none. */
    private readonly turn: string,
  ) {}

  issue(about: QuestionSubject): string {
    const turn = Buffer.from(this.turn, "hex");
    const body = Buffer.concat([
      turn,
      randomBytes(sizes.nonce),
      Buffer.from(this.digest(about), "base64url"),
    ]);
    return issuedPrefix + Buffer.concat([body, this.#mac(body)]).toString("base64url");
  }

  /** Undefined for what no runner with this key issued in this conversation. */
  read(id: string): IssuedId | undefined {
    if (!form.test(id)) return undefined;
    const bytes = Buffer.from(id.slice(issuedPrefix.length), "base64url");
    const body = bytes.subarray(0, -sizes.mac);
    if (!timingSafeEqual(bytes.subarray(-sizes.mac), this.#mac(body))) return undefined;
    return {
      turn: body.subarray(0, sizes.turn).toString("hex"),
      call: body.subarray(-sizes.call).toString("base64url"),
    };
  }

  /**
   * The same text for equal calls, regardless of the order of the arguments' keys. Keyed: it can't be computed
   * elsewhere.
   */
  digest({ kind, origin, name, input }: QuestionSubject): string {
    const call = canonicalJson([kind, origin, name, comparable(input)]);
    return this.#hmac("call", call).subarray(0, sizes.call).toString("base64url");
  }

  #mac(body: Buffer): Buffer {
    const { project, session = body.subarray(0, sizes.turn).toString("hex") } = this.conversation;
    const about = canonicalJson([project ?? null, session, body.toString("base64url")]);
    return this.#hmac("question", about).subarray(0, sizes.mac);
  }

  #hmac(purpose: string, text: string): Buffer {
    return createHmac("sha256", this.key).update(`${purpose}\0${text}`).digest();
  }
}
