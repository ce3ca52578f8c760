"""A worker that speaks HTTP only, so it could be in any language: it doubles numbers.

    python examples/worker_http.py 127.0.0.1:8080 STAGE_ID

It claims frames of a stage, does their rows, stores what came out, and commits each frame
once. To send a commit again is harmless, so a lost answer costs only a repetition.
"""

import json
import sys
import time
from http.client import HTTPConnection

WORKER = "doubler-1"


def post(server: str, path: str, body: object) -> dict | list:
    """POST JSON, and again while the server cannot be reached or is not ready (503)."""
    for pause_s in (0.1, 0.5, 2.0, 5.0):
        connection = HTTPConnection(server, timeout=30)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = json.load(response)
            if response.status < 400:
                return answer
            if response.status != 503:
                raise SystemExit(f"{answer['title']}: {answer['detail']}")
        except OSError as error:
            answer = {"detail": str(error)}
        finally:
            connection.close()
        time.sleep(pause_s)
    raise SystemExit(f"{server} does not answer: {answer['detail']}")


def run(server: str, frame: dict) -> None:
    """Do one frame: its rows are a window of the stage's list."""
    window, items = frame["cursor"], frame["document"]["items"]
    rows = [{"doubled": 2 * item} for item in items[window["from"] : window["to"]]]
    output = post(server, f"/api/payloads?row_count={len(rows)}", rows)
    done = {"worker_id": WORKER, "attempt": frame["attempt"], "cursor": window}
    done |= {"output_ref": output, "row_count": len(rows), "status": "success"}
    post(server, f"/api/frames/{frame['frame_id']}/commit", done)


def work(server: str, stage_id: str, idle_s: float = 2.0) -> None:
    """Claim and run frames until the stage has had none for a while."""
    ask = {"worker_id": WORKER, "want": 2, "max_inflight": 4}
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < idle_s:
        for frame in post(server, f"/api/stages/{stage_id}/frames/claim", ask):
            run(server, frame)
            quiet_since = time.monotonic()
        time.sleep(0.1)


if __name__ == "__main__":
    work(*sys.argv[1:3])
