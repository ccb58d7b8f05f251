"""Runs one turn and answers the agent's questions: python3 client.py "what to do" (standard library only)."""
import http.client, json, os, sys, time, urllib.error, urllib.request, uuid

URL = os.environ.get("AMBIT_URL", "http://127.0.0.1:8765")
HEADERS = {"authorization": "Bearer " + os.environ["AMBIT_TOKEN"], "content-type": "application/json"}
def call(method, path, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, HEADERS | headers, method=method)
    while True:
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                sys.exit(f"HTTP {error.code}: {error.read().decode()}")
            time.sleep(int(error.headers["Retry-After"]))

def records(request):
    response = call("POST", "/stream", request, Accept="application/x-ndjson")
    path, count = f"/runs/{response.headers['x-ambit-run-id']}", 0
    while True:
        try:
            for line in filter(bytes.strip, response):
                count += 1
                yield path, (record := json.loads(line))
                if record["kind"] == "result":
                    return
        except (OSError, http.client.HTTPException):
            time.sleep(1)
        response = call("GET", f"{path}/events?after={count}")  # It ended before the result: it was interrupted.

turn = {"sessionId": str(uuid.uuid4()), "permissions": {"default": "ask"}}
request, result = turn | {"messages": [{"role": "user", "content": sys.argv[1]}]}, {"stopReason": "paused"}
while result.get("stopReason") == "paused":
    for path, record in records(request):
        event, result = record.get("event", {}), record.get("result", result)
        if event.get("type") == "interaction_request":
            approved = input(f"{event['payload']['toolName']} {event['payload']['input']}? ") == "yes"
            call("POST", f"{path}/interactions/{event['id']}", {"approved": approved})
    request = turn  # No messages: the session's next turn uses the stored answers.
print(result["output"] if result["ok"] else result["error"])
