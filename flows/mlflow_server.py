"""MLflow's server with a guard in front of it.

    python -m flows.mlflow_server

MLflow alone answers pages of any port of this machine, so a page of another local server could change
records. It also takes any folder as an experiment's place for artifacts, and then writes there. Here only
programs and MLflow's own pages are answered (``PageGuard``), and artifacts stay inside the lab's folder for
them.

The variables are those that ``services.py`` sets: HOST, MLFLOW_PORT, MLFLOW_TRACKING_URI.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import unquote, urlparse

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpress.core.web import PageGuard, server_of

PLACES = {"experiments/create": "artifact_location", "model-versions/create": "source"}
"""Maps requests, by the end of their paths, to the field that names a place of artifacts."""
MOST_BYTES = 1 << 20
"""The body of such a request has at most this many bytes."""


class ArtifactsBelow:
    """ASGI middleware that refuses places of artifacts outside of one folder. Places on other machines
    (``s3://...``, ``mlflow-artifacts:/...``, ``runs:/...``) are MLflow's to judge."""

    def __init__(self, app: ASGIApp, root: Path) -> None:
        self._app, self._root = app, root.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with status 400."""
        field = next(
            (PLACES[end] for end in PLACES if str(scope.get("path", "")).rstrip("/").endswith(end)), None
        )
        if scope["type"] != "http" or field is None:
            await self._app(scope, receive, send)
            return
        body = b""
        async for part in Request(scope, receive).stream():
            body += part
            if len(body) > MOST_BYTES:
                await _refused(f"the request has more than {MOST_BYTES} bytes")(scope, receive, send)
                return
        if wrong := self._wrong(body, field):
            await _refused(wrong)(scope, receive, send)
            return

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)

    def _wrong(self, body: bytes, field: str) -> str:
        """Why the place is refused; empty if it is not."""
        try:
            place = json.loads(body).get(field)
        except (ValueError, AttributeError):
            return ""  # MLflow refuses it
        if not isinstance(place, str) or not place:
            return ""
        parsed = urlparse(place)
        if parsed.scheme not in ("", "file"):
            return ""
        path = Path(unquote(parsed.path) if parsed.scheme else place).resolve()
        inside = path.is_relative_to(self._root)
        return "" if inside else f"{field}: {place!r} is outside of {self._root}, where artifacts are kept"


def _refused(message: str) -> JSONResponse:
    return JSONResponse({"error_code": "INVALID_PARAMETER_VALUE", "message": message}, 400)


def artifact_root(uri: str) -> Path:
    """The folder of artifacts: beside an SQLite database, or the one that the lab's settings name."""
    if uri.startswith("sqlite:///"):
        return Path(uri.removeprefix("sqlite:///")).resolve().parent
    return Path(os.environ["MLFLOW_DEFAULT_ARTIFACT_ROOT"])


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    from mlflow.server import constants as server

    uri = os.environ["MLFLOW_TRACKING_URI"]
    root = artifact_root(uri)
    os.environ |= {
        server.BACKEND_STORE_URI_ENV_VAR: uri,
        server.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
        server.ARTIFACTS_DESTINATION_ENV_VAR: root.as_uri(),
        server.SERVE_ARTIFACTS_ENV_VAR: "true",
    }
    from mlflow.server.fastapi_app import app

    guarded = PageGuard(ArtifactsBelow(app, root), pages="own")
    server_of(guarded, host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ["MLFLOW_PORT"])).run()


if __name__ == "__main__":
    main()
