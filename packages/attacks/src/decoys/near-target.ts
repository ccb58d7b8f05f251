import type { Endpoint } from "./place/endpoint.js";

/** A server that answers with the decoys' secret, over TCP and UDP. */
export interface NearDecoy {
  readonly host: string;
  readonly tcp: number;
  readonly udp: number;
}

/** Where a sandbox without limits gets to: a decoy of the kit, or an author's own server, which says anything. */
export type NearTarget = NearDecoy | { readonly beyond: Endpoint };
