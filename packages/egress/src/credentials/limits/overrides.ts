/** Names of headers, with dashes: servers with a CGI heritage take `_` for one. */
const headers =
  /^(?:(?:x-)?(?:http-)?method(?:-override)?|x-(?:rewrite|original|forwarded|proxy|envoy-original)-(?:method|url|uri|path|prefix|host)|x-http-destinationurl|destination)$/;
/** Names of parameters that frameworks take the method from, whatever their value. */
const parameters = /^(?:[_$](?:http-?)?method|(?:x-)?http-method(?:-override)?|x-method(?:-override)?)$/;
/** A parameter of APIs for their own methods, and of others for HTTP's. */
const ambiguousParameter = /^(?:http-?)?method$/;
const methods = /^(?:get|head|options|post|put|patch|delete|copy|move|link|unlink)$/i;

/**
 * What makes some servers use another method, path or host than the request line's: a header, a parameter of the query,
 * or the target of WebDAV's COPY and MOVE. As in "the header X-HTTP-Method-Override"; undefined if there is none. Pure.
 */
export function overrideIn(url: string, rawHeaders: readonly string[]): string | undefined {
  const header = rawHeaders.find((name, index) => index % 2 === 0 && headers.test(plain(name)));
  if (header !== undefined) return `the header ${header}`;
  const query = url.indexOf("?");
  if (query === -1) return undefined;
  for (const [name, value] of new URLSearchParams(url.slice(query + 1))) {
    if (parameters.test(plain(name)) || (ambiguousParameter.test(plain(name)) && methods.test(value)))
      return `the parameter ${name}`;
  }
  return undefined;
}

/** The sign before a parameter's name stays. */
const plain = (name: string) => name.toLowerCase().replaceAll(/(?!^)_/g, "-");
