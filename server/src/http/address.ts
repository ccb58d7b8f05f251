/** The URL of a listener: `http://127.0.0.1:8765`. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
