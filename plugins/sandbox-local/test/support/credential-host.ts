import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAuthority } from "@ambit/egress/credentials";
import { CredentialHost } from "@ambit/testkit";

/** The kit's host of credentials, and the file by which a sandbox trusts it. */
export async function openCredentialHost(
  folder: string,
): Promise<{ readonly credentialHost: CredentialHost; readonly authorityFile: string }> {
  const own = await makeAuthority();
  const authorityFile = join(folder, "credential-host.pem");
  writeFileSync(authorityFile, own.certificate);
  return { credentialHost: await CredentialHost.open(own, await makeAuthority()), authorityFile };
}
