import { lookup as systemLookup } from "node:dns/promises";
import { type DecoyAddresses, type DecoyPlace, decoyPlaceAt, listedZone, loopback } from "./place.js";

/** Names of the hosts of credentials. */
export const keysZone = "ambit-keys.test";

/** Names of the listed zone that change, and the addresses of each for successive lookups. */
const answers: Readonly<Record<string, (place: DecoyPlace, asked: number) => readonly string[]>> = {
  alternating: ({ address, neighbour }, asked) => [asked % 2 === 0 ? address : neighbour],
  both: ({ address, neighbour }) => [address, neighbour],
  mapped: ({ neighbour }) => [`::ffff:${neighbour}`],
};

export const changingNames: readonly string[] = Object.keys(answers).map((label) => `${label}.${listedZone}`);

/**
 * A resolver of the kit's names, some of which change their address, as in DNS rebinding. Let the backend under test resolve
 * with `lookup`, and pass this to the suite.
 */
export class ChangingNames {
  /** Where the names lead, and the suite's decoys listen. */
  readonly place: DecoyPlace;
  readonly #asked = new Map<string, number>();

  /**
   * @param addresses of this host, for a guard that doesn't reach its loopback. Default: 127.0.0.1 and 127.0.0.2.
   * @throws TypeError for anything but two IPv4 addresses.
   */
  constructor(addresses?: DecoyAddresses) {
    this.place = addresses === undefined ? loopback : decoyPlaceAt(addresses);
  }

  /** All addresses of a name; other names than the kit's are resolved as this host does. */
  readonly lookup = async (name: string): Promise<readonly string[]> => {
    const { place } = this;
    const isOwn = name === place.listedName || name === place.unlistedName;
    if (name.endsWith(`.${keysZone}`) || (isOwn && place !== loopback)) return [place.address];
    const answer = answers[name.split(".")[0] ?? ""];
    if (answer === undefined || !name.endsWith(`.${listedZone}`)) {
      return (await systemLookup(name, { all: true })).map(({ address }) => address);
    }
    const asked = this.#asked.get(name) ?? 0;
    this.#asked.set(name, asked + 1);
    return answer(place, asked);
  };
}
