import { lookup as systemLookup } from "node:dns/promises";

/** Allowlists of the kit list every name in it. */
export const listedZone = "ambit-listed.test";
/** Names of the hosts of credentials. */
export const keysZone = "ambit-keys.test";
/** The address of the listed server, and the other addresses that the names change to. */
const listedAddress = "127.0.0.1";
const otherAddress = "127.0.0.2";

/** Names of the listed zone, and the addresses of each for successive lookups. */
const answers: Readonly<Record<string, (asked: number) => readonly string[]>> = {
  alternating: (asked) => [asked % 2 === 0 ? listedAddress : otherAddress],
  both: () => [listedAddress, otherAddress],
  mapped: () => [`::ffff:${otherAddress}`],
};

export const changingNames: readonly string[] = Object.keys(answers).map((label) => `${label}.${listedZone}`);

/**
 * A resolver whose listed names change their address, as in DNS rebinding. Let the backend under test resolve with
 * `lookup`, and pass this to the suite.
 */
export class ChangingNames {
  readonly #asked = new Map<string, number>();

  /** All addresses of a name; other names than the kit's are resolved as this host does. */
  readonly lookup = async (name: string): Promise<readonly string[]> => {
    if (name.endsWith(`.${keysZone}`)) return [listedAddress];
    const answer = answers[name.split(".")[0] ?? ""];
    if (answer === undefined || !name.endsWith(`.${listedZone}`)) {
      return (await systemLookup(name, { all: true })).map(({ address }) => address);
    }
    const asked = this.#asked.get(name) ?? 0;
    this.#asked.set(name, asked + 1);
    return answer(asked);
  };
}
