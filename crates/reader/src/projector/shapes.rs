//! Rows of executions, stages, frames and commands, from their folded state (streams/projector/shapes.py).

use crate::execution::command::Command;
use crate::execution::frame::Frame;
use crate::execution::plan::Plan;
use crate::execution::stage::Stage;
use crate::json::Object;
use crate::projector::rows::{Fields, Kind, Row, PROJECTION_VERSION};

/// How a row that will not change any more has ended.
#[derive(Clone, Copy)]
pub struct Ending {
    pub at: i64,
    /// Whether its execution ended first.
    pub is_cancelled: bool,
}

pub fn execution_row(plan: &Plan, updated_at: i64) -> Row {
    let is_suspended = plan.is_suspended && plan.ended_at.is_none();
    let failure = plan.failure.clone().flatten();
    let reasons = [&plan.error, &failure, &plan.suspension];
    // The last one counts even if it is empty.
    let error =
        reasons.into_iter().flatten().find(|text| !text.is_empty()).or(plan.suspension.as_ref());
    Fields::new()
        .number("execution_id", plan.execution_id)
        .text("tenant_id", &plan.tenant_id)
        .text("organization_id", &plan.organization_id)
        .time("created_at", plan.started_at)
        .time("updated_at", updated_at)
        .number("catalog_id", plan.catalog_id)
        .maybe_number("parent_execution_id", plan.parent_execution_id)
        .text("path", &plan.path)
        .number("version", plan.catalog_version)
        .text("status", if is_suspended { "SUSPENDED" } else { plan.status })
        .text("last_event_type", &plan.last_event_type)
        .maybe_text("last_node_name", plan.last_node_name.as_deref())
        .number("last_event_id", plan.last_event_id)
        .time("start_time", plan.started_at)
        .maybe_time("end_time", plan.ended_at)
        .maybe_text("error", error.map(String::as_str))
        .object("state", &state(plan))
        .maybe_object("result", plan.result.as_ref())
        .reference("result_ref", plan.output.as_ref())
        .number("last_seq", plan.seq)
        .number("projection_version", PROJECTION_VERSION)
        .maybe_text("state_checksum", None)
        .row(Kind::Execution, plan.execution_id)
}

fn state(plan: &Plan) -> Object {
    let parts = [("loop", &plan.loops), ("fanout", &plan.fanouts)]
        .into_iter()
        .filter(|(_, steps)| !steps.is_empty());
    parts
        .map(|(part, steps)| {
            let steps = steps.iter().map(|(step, one)| (step.clone(), one.clone().into()));
            (part.to_owned(), steps.collect::<Object>().into())
        })
        .collect()
}

pub fn stage_row(
    plan: &Plan,
    stage: &Stage,
    parent: Option<i64>,
    seq: i64,
    cancelled_at: Option<i64>,
) -> Row {
    Fields::new()
        .number("stage_id", stage.stage_id)
        .number("execution_id", plan.execution_id)
        .text("tenant_id", &plan.tenant_id)
        .text("organization_id", &plan.organization_id)
        .maybe_number("parent_event_id", parent)
        .number("loop_id", stage.loop_id)
        .text("kind", &stage.kind)
        .text("step_name", &stage.step)
        .text("dsl_ref", &stage.dsl_ref)
        .text("status", if cancelled_at.is_some() { "CANCELLED" } else { stage.status })
        .object("frame_policy", &stage.policy)
        .maybe_number("total_rows", stage.total_rows)
        .number("frames", stage.frames_made)
        .number("frames_done", stage.frames_done)
        .number("rows_done", stage.rows_done)
        .number("rows_failed", stage.rows_failed)
        .maybe_text("error", stage.failure.as_deref())
        .time("started_at", stage.opened_at)
        .maybe_time("ended_at", cancelled_at.or(stage.ended_at))
        .number("last_seq", seq)
        .number("projection_version", PROJECTION_VERSION)
        .row(Kind::Stage, stage.stage_id)
}

pub fn frame_row(plan: &Plan, frame: &Frame, seq: i64, ending: Option<Ending>) -> Row {
    let is_cancelled = ending.is_some_and(|one| one.is_cancelled);
    // An end cursor without any key counts as none.
    let end_cursor = frame.end_cursor.as_ref().filter(|cursor| !cursor.is_empty());
    Fields::new()
        .number("frame_id", frame.frame_id)
        .number("stage_id", frame.stage_id)
        .number("execution_id", plan.execution_id)
        .text("tenant_id", &plan.tenant_id)
        .text("organization_id", &plan.organization_id)
        .text("step_name", &frame.step)
        .number("ordinal", frame.ordinal)
        .maybe_text("shard_id", frame.shard_id.as_deref())
        .object("cursor", end_cursor.unwrap_or(&frame.cursor))
        .number("row_count", frame.row_count)
        .number("rows_failed", frame.failed_rows)
        .text("status", if is_cancelled { "CANCELLED" } else { frame.status })
        .maybe_text("owner_worker", frame.lease.as_ref().map(|one| one.owner.as_str()))
        .maybe_time("lease_until", frame.lease.as_ref().map(|one| one.until()))
        .reference("output_ref", frame.output.as_ref())
        .number("events_emitted", frame.version)
        .number("attempts", frame.attempt)
        .maybe_text("error", frame.error.as_deref())
        .time("created_at", frame.created_at)
        .maybe_time("completed_at", ending.map(|one| one.at))
        .number("last_seq", seq)
        .number("projection_version", PROJECTION_VERSION)
        .row(Kind::Frame, frame.frame_id)
}

/// The command after the event at `seq`. One to be republished is PENDING.
pub fn command_row(plan: &Plan, command: &Command, seq: i64, ending: Option<Ending>) -> Row {
    let is_cancelled = ending.is_some_and(|one| one.is_cancelled);
    let own_status = if command.waits() { "PENDING" } else { command.status };
    Fields::new()
        .number("command_id", command.command_id)
        .number("execution_id", plan.execution_id)
        .text("tenant_id", &plan.tenant_id)
        .text("organization_id", &plan.organization_id)
        .text("step_name", &command.step)
        .text("tool", &command.tool)
        .text("pool", &command.pool)
        .text("status", if is_cancelled { "CANCELLED" } else { own_status })
        .maybe_text("owner_worker", command.lease.as_ref().map(|one| one.owner.as_str()))
        .maybe_time("lease_until", command.lease.as_ref().map(|one| one.until()))
        .reference("result_ref", command.output.as_ref())
        .maybe_text("error", command.error.as_deref())
        .number("events_emitted", command.version)
        .number("attempts", command.attempt)
        .time("created_at", command.created_at)
        .maybe_time("completed_at", ending.map(|one| one.at))
        .number("last_seq", seq)
        .number("projection_version", PROJECTION_VERSION)
        .row(Kind::Command, command.command_id)
}
