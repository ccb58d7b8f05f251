import type { Program } from "./program.js";

/**
 * Programs that request `/file`, whose content is `served`, from a listed host, `$HOST` (a name that only the proxy
 * resolves), and from a service on this host's loopback, `$GATEWAY`. Neither is configured beyond its URL.
 */
export const network: readonly Program[] = [
  {
    name: "curl",
    does: "a listed host, and a service on the host's loopback",
    needs: ["curl"],
    script: `curl -sS http://$HOST/file http://$GATEWAY/file`,
    prints: /^served\nserved\n$/,
  },
  {
    name: "wget",
    does: "the same",
    needs: ["wget"],
    script: `wget -qO- http://$HOST/file http://$GATEWAY/file`,
    prints: /^served\nserved\n$/,
  },
  {
    name: "urllib",
    does: "the same",
    needs: ["python3"],
    script: `python3 -c 'import sys, urllib.request as r; [print(r.urlopen("http://%s/file" % h).read().decode(), end="") for h in sys.argv[1:]]' $HOST $GATEWAY`,
    prints: /^served\nserved\n$/,
  },
  {
    name: "fetch",
    does: "the same, in Node.js",
    needs: ["node"],
    script: `node -e 'Promise.all(process.argv.slice(1).map((host) => fetch("http://" + host + "/file").then((got) => got.text()))).then((all) => process.stdout.write(all.join("")))' $HOST $GATEWAY`,
    prints: /^served\nserved\n$/,
  },
  {
    name: "git over HTTP",
    does: "clones from a listed host, and from the host's loopback",
    needs: ["git"],
    script: `git clone -q http://$HOST/repository one; git clone -q http://$GATEWAY/repository two; git -C one log --format=%s; git -C two log --format=%s`,
    prints: /^first\nfirst\n$/,
  },
  {
    name: "pip",
    does: "installs from a listed index",
    needs: ["python3", "pip3"],
    script: `python3 -m pip download -q --no-deps --trusted-host \${HOST%:*} --index-url http://$HOST/index part 2>&1; ls`,
    prints: /part-1-py3-none-any\.whl/,
  },
  {
    name: "npm",
    does: "installs from a listed registry",
    needs: ["node", "npm"],
    script: `echo '{}' > package.json; npm install --registry http://$HOST/npm --no-audit --no-fund --silent part && cat node_modules/part/package.json`,
    prints: /"name":"part"/,
  },
  {
    name: "pnpm",
    does: "the same, with files copied from the store in the home, and hard links to a store in the workspace",
    needs: ["node", "pnpm.cjs"],
    script: `echo '{"dependencies":{"part":"1.0.0"}}' > package.json; for store in "$HOME/store" "$PWD/store"; do rm -rf node_modules; pnpm.cjs install --store-dir "$store" --registry http://$HOST/npm 2>&1; cat node_modules/part/package.json; stat -L -c ' links: %h' node_modules/part/package.json; done`,
    prints: /"name":"part".* links: 1\n.*"name":"part".* links: 2\n/s,
  },
  {
    name: "Java",
    does: "the same, given the proxy by `-Dhttp.proxyHost` and `-Dhttp.proxyPort`",
    needs: ["java", "javac"],
    script: `echo 'public class Get { public static void main(String[] hosts) throws Exception { for (String host : hosts) System.out.write(new java.net.URL("http://" + host + "/file").openStream().readAllBytes()); System.out.flush(); } }' > Get.java; javac -nowarn Get.java 2>&1; java -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttp.nonProxyHosts=localhost Get $HOST $GATEWAY`,
    prints: /served\nserved\n$/,
  },
  {
    name: "Maven",
    does: "reads a project whose parent is in a listed repository",
    needs: ["mvn", "java"],
    script: `mkdir home; echo '<settings/>' > none.xml; printf '<project><modelVersion>4.0.0</modelVersion><parent><groupId>a</groupId><artifactId>parent</artifactId><version>1</version></parent><artifactId>child</artifactId><packaging>pom</packaging><repositories><repository><id>listed</id><url>http://%s/maven</url></repository></repositories></project>' $HOST > pom.xml; mvn -B -gs none.xml -s none.xml -Dmaven.repo.local=$PWD/m2 validate 2>&1; ls m2/a/parent/1`,
    prints: /BUILD SUCCESS[\s\S]*parent-1\.pom/,
  },
  {
    name: "ssh",
    does: "reaches a listed host, and says why it can't reach another",
    needs: ["ssh"],
    script: `ssh -v -o BatchMode=yes -p \${HOST#*:} \${HOST%:*} 2>&1 | grep 'remote software'; ssh -o BatchMode=yes unlisted.test 2>&1`,
    prints: /software version listed\b[\s\S]*boundary refused the connection to unlisted\.test:22/,
  },
  {
    name: "a local server",
    does: "answers at localhost, 127.0.0.1, 127.0.1.1 and the host name",
    needs: ["python3", "curl"],
    script: `echo mine > file; python3 -m http.server 8080 >/dev/null 2>&1 & for i in 1 2 3 4 5 6 7 8 9; do curl -s http://localhost:8080/ >/dev/null && break; sleep 0.2; done; for host in localhost 127.0.0.1 127.0.1.1 $(hostname); do curl -sS http://$host:8080/file; done`,
    prints: /^(mine\n){4}$/,
  },
];
