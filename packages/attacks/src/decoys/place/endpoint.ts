/** The address of a listener, as a program would write it. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The same by a name, with the name's address. */
export interface NamedEndpoint extends Endpoint {
  readonly address: string;
}
