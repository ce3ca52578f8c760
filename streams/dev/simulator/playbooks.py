"""The simulated playbooks: small, with every kind of step."""

from __future__ import annotations

from functools import lru_cache

from streams.errors import Refused
from streams.playbook.model import Playbook
from streams.playbook.parse import parse

_TEMPLATE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: sim, path: simulated/{index}}}
workload: {{rows: []}}
workflow:
  - step: start
    next: [{{step: prepare}}]
  - step: prepare
    tool: {{kind: noop}}
    next: [{{step: each}}]
  - step: each
    on_error: {on_error}
    loop:
      in: "{{{{ workload.rows }}}}"
      iterator: row
      spec: {{mode: {mode}, max_in_flight: {window}}}
      frame_policy: {{size: {size}, row_concurrency: 3}}
    tool:
      - fetch:
          kind: http
          row: "{{{{ iter.row.n }}}}"
          bad: "{{{{ iter.row.bad }}}}"
          eval:
            - expr: "{{{{ outcome.status == 'error' and outcome.error.kind == 'busy' }}}}"
              do: retry
              attempts: 8
              delay: 0.05
            - expr: "{{{{ outcome.status == 'error' }}}}"
              do: fail
            - else: {{do: continue}}
      - save:
          kind: postgres
          command: "INSERT INTO saved (execution, n) VALUES (:execution, :n)"
          execution: "{{{{ {execution} }}}}"
          row: "{{{{ iter.row.n }}}}"
    next: [{{step: finish}}]
  - step: finish
    tool: {{kind: noop}}
"""

_CALLING = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sim, path: simulated/calling}
workload: {rows: []}
workflow:
  - step: each
    loop:
      in: "{{ workload.rows }}"
      iterator: row
      spec: {mode: parallel, max_in_flight: 3}
      frame_policy: {size: 2, parallelism: 2, row_concurrency: 2}
    tool:
      kind: playbook
      path: simulated/4
      workload: {rows: ["{{ iter.row }}"], execution: "{{ execution_id }}"}
"""

_SHAPES = (
    {"mode": "parallel", "window": 3, "size": 4, "on_error": "fail"},
    {"mode": "parallel", "window": 6, "size": 2, "on_error": "continue"},
    {"mode": "sequential", "window": 1, "size": 5, "on_error": "fail"},
    {"mode": "fanout", "window": 4, "size": 1, "on_error": "fail"},
)
STARTED = len(_SHAPES)
"""Number of playbooks that are started directly."""
_CALLED = {"mode": "sequential", "window": 1, "size": 1, "on_error": "fail"}
CALLING = STARTED + 1
"""The playbook whose rows each call another, which saves under its caller's id."""


@lru_cache(maxsize=1)
def simulated() -> tuple[Playbook, ...]:
    """Return all playbooks, compiled once."""
    texts = [
        _TEMPLATE.format(index=index, execution="execution_id", **shape)
        for index, shape in enumerate(_SHAPES)
    ]
    texts.append(_TEMPLATE.format(index=STARTED, execution="workload.execution", **_CALLED))
    return tuple(parse(text) for text in (*texts, _CALLING))


class SimulatedPlaybooks:
    """Looks up simulated playbooks by number."""

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return a playbook."""
        return simulated()[catalog_id - 1]

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Find a playbook by its path."""
        for number, playbook in enumerate(simulated(), start=1):
            if playbook.path == path:
                return number, 1
        raise Refused(f"no playbook {path}")
