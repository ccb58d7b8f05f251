/** Where something listens, as a program would write it. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}
