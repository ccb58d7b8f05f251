/** Where something listens, as a program would write it. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The same by a name, with the address that the name stands for. */
export interface NamedEndpoint extends Endpoint {
  readonly address: string;
}
