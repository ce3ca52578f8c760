"""The public playbooks that run on one machine: what each needs, and how it ends.

Paths are relative to `fixtures/` of the collection. `{api}` is the collection's own HTTP server,
`{stand_in}` the one of `stand_in.py`, `{host}` … `{password}` the database of the credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COMPLETED, FAILED, REFUSED = "COMPLETED", "FAILED", "REFUSED"
Workload = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Case:
    """One playbook of the collection."""

    number: int
    file: str
    workload: Workload = field(default_factory=dict)
    expected: tuple[str, ...] = (COMPLETED,)
    resets: bool = False
    """Whether the server's flaky counters are reset first."""
    timeout_s: float = 120.0
    why: str = ""
    """Part of the error with which it has to fail."""
    prepare: str = ""
    """A statement to run first: what an earlier use of the system would have left."""

    @property
    def path(self) -> str:
        """The file, relative to the collection's `fixtures/`."""
        folder = "" if self.file.startswith("subscription/") else "playbooks/"
        return f"{folder}{self.file}.yaml"


_API = {"api_url": "{api}"}
_POSTS = {"api_url": "{stand_in}/posts"}
_ANYTHING = "{stand_in}/anything"
_DB = {
    "db_host": "{host}",
    "db_port": "{port}",
    "db_name": "{database}",
    "db_user": "{user}",
    "db_password": "{password}",
}
_PG = {
    "pg_host": "{host}",
    "pg_port": "{port}",
    "pg_user": "{user}",
    "pg_password": "{password}",
    "pg_database": "{database}",
}
_AUTH0 = "api_integration/auth0"
_FIRST_USER = (
    "INSERT INTO auth.users (user_id, auth0_id, email) VALUES (1, 'first', 'first@example.org') "
    "ON CONFLICT DO NOTHING"
)
_BATCH = "batch_execution"
_PFT = "pft_flow_test"
_PAGES = "pagination"

CASES: tuple[Case, ...] = (
    Case(1, "actions_test"),
    Case(11, f"{_AUTH0}/provision_auth_schema"),
    Case(9, f"{_AUTH0}/check_playbook_access"),
    Case(12, f"{_AUTH0}/setup_admin_permissions", prepare=_FIRST_USER),
    Case(14, f"{_AUTH0}/user_management"),
    Case(15, "api_integration/github_metrics/github_metrics", {"api_base_url": "{stand_in}"}),
    Case(17, "atomic_item_context"),
    Case(
        20,
        f"{_BATCH}/heavy_payload_pipeline_in_step/heavy_payload_pipeline_in_step",
        {"details_api_url": _ANYTHING},
        timeout_s=300,
    ),
    Case(
        21,
        f"{_BATCH}/heavy_payload_pipeline_in_step_parallel/heavy_payload_pipeline_in_step_parallel",
        {"details_api_url": _ANYTHING},
        timeout_s=300,
    ),
    Case(
        19,
        f"{_BATCH}/heavy_payload_pipeline_chunk_worker/heavy_payload_pipeline_chunk_worker",
        {"details_api_url": _ANYTHING},
    ),
    Case(
        25,
        f"{_BATCH}/parallel_distributed_claim_regression/parallel_distributed_claim_regression",
        {"worker_delay_seconds": 2},
    ),
    Case(
        26,
        f"{_BATCH}/parallel_distributed_claim_regression_worker/"
        "parallel_distributed_claim_regression_worker",
        {"worker_delay_seconds": 1},
    ),
    Case(29, f"{_BATCH}/server_oom_stress_test/server_oom_stress_test", timeout_s=600),
    Case(30, f"{_BATCH}/server_oom_stress_test_v2/server_oom_stress_test_v2", timeout_s=600),
    Case(27, f"{_BATCH}/server_oom_stress_chunk_worker/server_oom_stress_chunk_worker"),
    Case(28, f"{_BATCH}/server_oom_stress_chunk_worker_v2/server_oom_stress_chunk_worker_v2"),
    Case(
        22,
        f"{_BATCH}/kind_playbook_lease_expiry/kind_playbook_lease_expiry",
        {"api_delay_seconds": 1, "item_delay_seconds": 0},
        timeout_s=300,
    ),
    Case(
        23,
        f"{_BATCH}/kind_playbook_lease_expiry_worker/kind_playbook_lease_expiry_worker",
        {"api_delay_seconds": 1, "item_delay_seconds": 0},
    ),
    Case(
        32,
        f"{_BATCH}/traveler_batch_enrichment_in_step/traveler_batch_enrichment_in_step",
        {"profile_api_url": _ANYTHING},
    ),
    Case(
        31,
        f"{_BATCH}/traveler_batch_enrichment_chunk_worker/traveler_batch_enrichment_chunk_worker",
        {"profile_api_url": _ANYTHING},
    ),
    Case(36, "comprehensive_test"),
    Case(41, "control_flow_workbook/control_flow_workbook"),
    Case(45, "data_transfer/http_to_postgres_direct/http_to_postgres_direct", _POSTS),
    Case(46, "data_transfer/http_to_postgres_iterator/http_to_postgres_iterator", _POSTS),
    Case(47, "data_transfer/http_to_postgres_simple/http_to_postgres_simple", _POSTS),
    Case(48, "data_transfer/http_to_postgres_transfer/http_to_postgres_transfer", _POSTS),
    Case(49, "data_transfer/postgres_jsonb_test/postgres_jsonb_test"),
    Case(54, "duckdb_test"),
    Case(60, "fanout_reduce/fanout_reduce_phase6"),
    Case(61, "gui/widget_all_types/widget_all_types"),
    Case(62, "hello_world/hello_world"),
    Case(63, "http_test", _API),
    Case(69, "iterator_save_test"),
    Case(70, "iterator_save_test/iterator_save_test"),
    Case(71, "json_serialization_save"),
    Case(72, "json_serialization_save/json_serialization_save"),
    Case(75, "load_test/heavy_loop_aggregation/heavy_loop_aggregation"),
    Case(76, "load_test/reference_chain_loop_stress/reference_chain_loop_stress", _API),
    Case(
        77,
        "load_test/state_report_synthetic_load/state_report_synthetic_load",
        timeout_s=300,
    ),
    Case(78, "load_test/state_report_synthetic_load/state_report_synthetic_load_worker"),
    Case(80, "loop_test"),
    Case(86, f"{_PAGES}/basic/test_pagination_basic", _API),
    Case(87, f"{_PAGES}/cursor/test_pagination_cursor", _API),
    Case(
        88,
        f"{_PAGES}/fetch_load_test/test_fetch_load",
        {**_API, "api_min_delay": 0.01, "api_max_delay": 0.02},
        timeout_s=300,
    ),
    Case(89, f"{_PAGES}/loop_with_pagination/test_loop_with_pagination", _API),
    Case(90, f"{_PAGES}/max_iterations/test_pagination_max_iterations", _API),
    Case(91, f"{_PAGES}/offset/test_pagination_offset", _API),
    Case(92, f"{_PAGES}/pipeline/test_pagination_pipeline", {**_API, **_DB}),
    Case(
        93,
        f"{_PAGES}/pipeline/test_pipeline_error_handling",
        _API,
        (FAILED,),
        resets=True,
        why="test_fail_auth",
    ),
    Case(94, f"{_PAGES}/pipeline/test_pipeline_heavy_payload", _API),
    Case(95, f"{_PAGES}/pipeline/test_pipeline_simple", _API),
    Case(96, f"{_PAGES}/pipeline_v2/test_pagination_pipeline_v2", {**_API, **_DB}),
    Case(97, f"{_PAGES}/retry/test_pagination_retry", _API, resets=True),
    Case(98, "patient_batch_parallel_queue/patient_batch_parallel_queue", _API, timeout_s=600),
    Case(101, f"{_PFT}/test_pft_flow", _API, timeout_s=900),
    Case(
        102,
        f"{_PFT}/test_pft_flow_v2",
        {**_API, "num_facilities": 2, "patients_per_facility": 20},
        timeout_s=300,
    ),
    Case(99, f"{_PFT}/pft_queue_db_maintenance", _PG),
    Case(100, f"{_PFT}/test_mds_batch_worker", _API),
    Case(103, f"{_PFT}/test_pft_page_continuation", _API),
    Case(105, "playbook_composition/user_profile_scorer"),
    Case(104, "playbook_composition/playbook_composition"),
    Case(
        108,
        "python_psycopg/http_to_postgres_bulk/http_to_postgres_bulk_python",
        {**_POSTS, **_PG},
    ),
    Case(110, "regression_test/create_test_schema"),
    Case(113, "retry_test/duckdb_retry_query"),
    Case(114, "retry_test/http_retry_status_code", {"test_url": "{stand_in}/get"}),
    Case(115, "retry_test/http_retry_with_stop", {"test_url": "{stand_in}/get"}),
    Case(116, "retry_test/postgres_retry_connection"),
    Case(117, "retry_test/python_retry_exception", {}, (COMPLETED, FAILED)),
    Case(118, "retry_test/retry_simple_config", _API, resets=True),
    Case(119, "root_scripts/test_implicit_end_routing"),
    Case(120, "root_scripts/test_keychain"),
    Case(121, "root_scripts/test_script_loading", {}, (FAILED,), why="step end"),
    Case(122, "root_scripts/test_simple_loop"),
    Case(123, "save_storage_test/create_tables"),
    Case(124, "save_storage_test/save_all_storage_types"),
    Case(126, "save_storage_test/save_edge_cases"),
    Case(127, "save_storage_test/save_simple_test"),
    Case(129, "script_execution/postgres_file_example"),
    Case(131, "script_execution/python_file_example"),
    Case(133, "script_execution/python_http_example", {"script_url": "{stand_in}/hello_world.py"}),
    Case(134, "simple_python"),
    Case(139, "test_args_passing"),
    Case(140, "test_end_with_action"),
    Case(141, "test_gcs_storage"),
    Case(143, "test_large_result_extraction"),
    Case(144, "test_large_tabular_result"),
    Case(145, "test_loop_instance_isolation/playbook"),
    Case(147, "test_output_select"),
    Case(148, "test_oversize_command_context"),
    Case(149, "test_resolve_by_urn"),
    Case(150, "test_side_effect_barrier", {"gcs_host": "{stand_in_host}"}),
    Case(151, "test_start_with_action"),
    Case(152, "test_storage_tiers"),
    Case(154, "tradedb/tradedb_create_db"),
    Case(153, "tradedb/tradedb_bootstrap"),
    Case(158, "vars_test/test_transient"),
    Case(159, "vars_test/test_vars_api"),
    Case(160, "vars_test/test_vars_block"),
    Case(161, "vars_test/test_vars_simple"),
    Case(162, "vars_test/test_vars_template_access"),
    Case(163, "subscription/handle_webhook"),
    Case(164, "subscription/handle_webhook_priority"),
    Case(165, "subscription/sub_ingest_default"),
    Case(166, "subscription/sub_ingest_priority"),
    Case(33, "broken_playbooks/should_error_tool_is_required", {}, (REFUSED,)),
    Case(34, "broken_sql", {}, (FAILED,), why="verify_pg_data"),
    Case(136, "spike/spike_failing_subflow", {}, (FAILED,), why="hit_non_routable"),
)

CREDENTIALS = ("pg_k8s", "pg_local", "pg_auth", "test_postgres", "pg_trade")
"""Names by which the playbooks reach the database."""
