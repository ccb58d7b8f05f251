import type { Program } from "./program.js";

/** Writes, builds and runs something in each language. */
export const languages: readonly Program[] = [
  {
    name: "Python",
    does: "threads, processes, SQLite, a virtual environment",
    needs: ["python3"],
    script: `
cat > main.py <<'END'
import concurrent.futures as futures, multiprocessing, os, sqlite3, tempfile
def square(number): return number * number
if __name__ == "__main__":
    with futures.ProcessPoolExecutor(2) as pool: print(list(pool.map(square, [2, 3])))
    with futures.ThreadPoolExecutor(2) as pool: print(list(pool.map(square, [4, 5])))
    with multiprocessing.Manager() as manager: manager.list([1])
    with sqlite3.connect("data.db") as data: print(data.execute("select 6 * 6").fetchone())
    with tempfile.NamedTemporaryFile() as file: print(os.path.dirname(file.name), os.path.expanduser("~"))
END
python3 main.py && python3 -m venv --without-pip env && env/bin/python -c 'import sys; print(sys.prefix)'`,
    prints: /\[4, 9\]\n\[16, 25\]\n\(36,\)\n\/tmp \/home\/tool\n\S+\/env\n/,
  },
  {
    name: "asyncio",
    does: "a server and a client on loopback, subprocesses",
    needs: ["python3"],
    script: `
cat > main.py <<'END'
import asyncio
async def serve(reader, writer):
    writer.write(b"got " + await reader.readline()); await writer.drain(); writer.close()
async def main():
    server = await asyncio.start_server(serve, "localhost", 8080)
    reader, writer = await asyncio.open_connection("127.0.0.1", 8080)
    writer.write(b"this\\n"); print((await reader.read()).decode(), end="")
    child = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0].decode(), end=""); server.close()
asyncio.run(main())
END
python3 main.py`,
    prints: /got this\nchild\n/,
  },
  {
    name: "pip",
    does: "builds and installs a package from its folder",
    needs: ["python3", "pip3"],
    has: "python3 -c 'import setuptools, wheel'",
    script: `
mkdir -p part && echo 'value = 7' > part/__init__.py
printf 'from setuptools import setup\\nsetup(name="part", version="1", packages=["part"])\\n' > setup.py
python3 -m pip install -q --no-index --no-build-isolation --no-deps --target here . 2>&1
PYTHONPATH=here python3 -c 'import part; print("installed", part.value)'`,
    prints: /installed 7/,
  },
  {
    name: "Node.js",
    does: "worker threads, child processes, a server, file events",
    needs: ["node"],
    script: `
cat > main.cjs <<'END'
const { Worker, isMainThread, parentPort } = require("node:worker_threads");
if (!isMainThread) { parentPort.postMessage("worker"); } else {
  new Worker(__filename).once("message", async (text) => {
    console.log(text, require("node:child_process").execFileSync("echo", ["child"]).toString().trim());
    const server = require("node:http").createServer((request, response) => response.end("served"));
    await new Promise((done) => server.listen(8080, "127.0.0.1", done));
    console.log(await (await fetch("http://localhost:8080/").catch(() => fetch("http://127.0.0.1:8080/"))).text());
    server.close();
    const watcher = require("node:fs").watch(".", () => { console.log("seen"); watcher.close(); });
    setTimeout(() => require("node:fs").writeFileSync("new", ""), 50);
  });
}
END
node main.cjs`,
    prints: /worker child\nserved\nseen\n/,
  },
  {
    name: "npm",
    does: "installs a package from a folder, runs a script",
    needs: ["node", "npm"],
    script: `
mkdir part && echo '{"name":"part","version":"1.0.0","bin":"run.js"}' > part/package.json
printf '#!/usr/bin/env node\\nconsole.log("part ran")\\n' > part/run.js && chmod +x part/run.js
echo '{"name":"whole","version":"1.0.0","scripts":{"go":"part"}}' > package.json
npm install --offline --no-audit --no-fund --silent ./part && npm run -s go && npm pack --silent`,
    prints: /part ran\nwhole-1\.0\.0\.tgz/,
  },
  {
    name: "C",
    does: "make, a static library, POSIX threads",
    needs: ["gcc", "make", "ar"],
    script: `
printf 'int twice(int n) { return 2 * n; }\\n' > part.c
printf '#include <pthread.h>\\n#include <stdio.h>\\nint twice(int);\\nstatic void *run(void *of) { printf("twice %%d\\\\n", twice(*(int *)of)); return 0; }\\nint main(void) { pthread_t t; int n = 21; pthread_create(&t, 0, run, &n); return pthread_join(t, 0); }\\n' > main.c
printf 'main: main.c libpart.a\\n\\t@gcc -O1 -o $@ main.c -L. -lpart -pthread\\nlibpart.a: part.o\\n\\t@ar rc $@ $^\\n' > Makefile
make -s -j2 && ./main`,
    prints: /twice 42/,
  },
  {
    name: "C++",
    does: "CMake with Ninja, exceptions, a shared library",
    needs: ["g++", "cmake", "ninja"],
    script: `
printf '#include <stdexcept>\\nvoid fail() { throw std::runtime_error("caught"); }\\n' > part.cpp
printf '#include <iostream>\\nvoid fail();\\nint main() { try { fail(); } catch (std::exception &error) { std::cout << error.what() << std::endl; } }\\n' > main.cpp
printf 'cmake_minimum_required(VERSION 3.10)\\nproject(try CXX)\\nadd_library(part SHARED part.cpp)\\nadd_executable(main main.cpp)\\ntarget_link_libraries(main part)\\n' > CMakeLists.txt
cmake -G Ninja -B out . >log 2>&1 && ninja -C out >>log && out/main || cat log`,
    prints: /caught/,
  },
  {
    name: "Sanitizers",
    does: "finds an overflow; a program with a leak ends as it does without them",
    needs: ["gcc"],
    has: "echo 'int main(void){return 0;}' | gcc -fsanitize=address,undefined -x c - -o /dev/null",
    script: `
printf '#include <stdlib.h>\\nint main(int n, char **v) { volatile char *p = malloc(4); if (n > 1) p[4] = 1; return !p; }\\n' > main.c
gcc -g -fsanitize=address,undefined main.c -o main
./main over 2>&1 | grep -o heap-buffer-overflow | head -1 | sed 's/.*-//'; ./main; echo "ended $?"`,
    prints: /overflow\nended 0/,
  },
  {
    name: "Java",
    does: "javac, jar, random numbers, a server on loopback",
    needs: ["java", "javac", "jar"],
    script: `
cat > Main.java <<'END'
import java.net.*;
import java.security.SecureRandom;
public class Main {
  public static void main(String[] arguments) throws Exception {
    ServerSocket server = new ServerSocket(0);
    new Thread(() -> {
      try (Socket one = server.accept()) { one.getOutputStream().write(7); } catch (Exception error) { }
    }).start();
    int got = new Socket("localhost", server.getLocalPort()).getInputStream().read();
    String host = InetAddress.getLocalHost().getHostName();
    System.out.println("got " + got + " " + host + " " + new SecureRandom().nextInt(1));
  }
}
END
javac Main.java && jar cfe main.jar Main Main*.class && java -jar main.jar`,
    prints: /got 7 sandbox 0/,
  },
  {
    name: "Maven",
    does: "starts, and reads a project",
    needs: ["mvn", "java"],
    script: `
echo '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>whole</artifactId><version>1</version></project>' > pom.xml
mvn -v | grep -o 'Apache Maven'; mvn -o -B validate`,
    prints: /Apache Maven[\s\S]*BUILD SUCCESS/,
  },
  {
    name: "Rust",
    does: "cargo builds, tests and runs a package",
    needs: ["cargo", "rustc"],
    script: `
cargo init -q --vcs none --name whole . && printf 'fn main() { println!("{:?}", std::thread::spawn(|| 6 * 7).join().unwrap()); }\\n#[test]\\nfn holds() { assert_eq!(2, 1 + 1); }\\n' > src/main.rs
cargo test -q --offline 2>&1 | grep -o '1 passed'; cargo run -q --offline`,
    prints: /1 passed\n42/,
  },
  {
    name: "Go",
    does: "builds and tests a module",
    needs: ["go"],
    script: `
go mod init whole 2>/dev/null; printf 'package main\\nimport "fmt"\\nfunc main() { c := make(chan int); go func() { c <- 42 }(); fmt.Println(<-c) }\\n' > main.go
go vet . && go run .`,
    prints: /42/,
  },
  {
    name: "Perl",
    does: "modules, fork, sockets",
    needs: ["perl"],
    script: `perl -MIO::Socket::INET -MPOSIX -e '
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $!;
if (!fork) { print { $server->accept } "from perl\\n"; exit }
print scalar readline(IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $server->sockport)); wait; print POSIX::floor(2.5), "\\n"'`,
    prints: /from perl\n2/,
  },
  {
    name: "Ruby",
    does: "threads, a server on loopback",
    needs: ["ruby"],
    script: `ruby -rsocket -e 's = TCPServer.new("127.0.0.1", 0); Thread.new { s.accept.puts "from ruby" }; puts TCPSocket.new("127.0.0.1", s.addr[1]).gets'`,
    prints: /from ruby/,
  },
  {
    name: "PHP",
    does: "runs a script",
    needs: ["php"],
    script: `php -r 'echo json_encode(["php" => 42]), "\\n";'`,
    prints: /"php":42/,
  },
  {
    name: "Tcl",
    does: "runs a script",
    needs: ["tclsh"],
    script: `echo 'puts [expr {6 * 7}]; puts [exec echo child]' | tclsh`,
    prints: /42\nchild/,
  },
  {
    name: "Bash",
    does: "process substitution, job control, here-documents, traps",
    needs: ["bash"],
    script: `bash -c 'set -m; trap "echo trapped" EXIT; diff <(echo a) <(echo a) && sleep 0.1 & wait %1; cat <<< "here"'`,
    prints: /here\ntrapped/,
  },
];
