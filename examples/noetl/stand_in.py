"""A local server for the public addresses that the playbooks ask: posts, echo, a repository."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

POSTS = 100


def application(scripts: Path) -> web.Application:
    """Return the server; `scripts` is the folder with the collection's Python scripts."""

    async def posts(request: web.Request) -> web.Response:
        return web.json_response([_post(number) for number in range(1, POSTS + 1)])

    async def echo(request: web.Request) -> web.Response:
        text = await request.text()
        is_json = request.can_read_body and request.content_type == "application/json"
        body = await request.json() if is_json else None
        answer = {
            "args": dict(request.query),
            "data": text,
            "headers": dict(request.headers),
            "json": body,
            "method": request.method,
            "url": str(request.url),
        }
        return web.json_response(answer)

    async def repository(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        answer = {
            "id": 1,
            "name": name.rpartition("/")[2],
            "full_name": name,
            "stargazers_count": 10,
            "watchers_count": 10,
            "forks_count": 2,
            "open_issues_count": 1,
            "subscribers_count": 3,
            "size": 100,
            "language": "Python",
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "pushed_at": "2026-01-01T00:00:00Z",
        }
        return web.json_response(answer)

    async def script(request: web.Request) -> web.Response:
        return web.Response(text=(scripts / "hello_world.py").read_text("utf-8"))

    made = web.Application(client_max_size=64 * 2**20)
    made.router.add_get("/posts", posts)
    made.router.add_get("/hello_world.py", script)
    made.router.add_get("/repos/{name:.+}", repository)
    made.router.add_route("*", "/{rest:.*}", echo)
    return made


def _post(number: int) -> dict[str, object]:
    body = f'body of post {number}\nit\'s "quoted"'
    return {"userId": (number - 1) // 10 + 1, "id": number, "title": f"post {number}", "body": body}
