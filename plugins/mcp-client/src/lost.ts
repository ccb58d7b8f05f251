/** A request that has no result for a reason outside it. The message reads on after the server's name. */
abstract class Lost extends Error {
  /** @param output what the server wrote at last, in whole lines. */
  constructor(
    message: string,
    readonly output = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The request never left the runner. */
export class NotSent extends Lost {
  override readonly name = "NotSent";
}

/** The request was sent, and its answer will never come. */
export class AnswerLost extends Lost {
  override readonly name = "AnswerLost";
}

/** An answer that isn't JSON, by whose name the SDK knows it. The message reads on after the server's name. */
export class NotJson extends SyntaxError {}
