//! Reading of an event as its class (streams/events/types.py).

use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::known::{
    CommandChange, CommandEvent, FrameChange, FrameEvent, Known, ResultStored, StageOpened,
};
use crate::events::model::Event;
use crate::events::reading::{object_in, text_in};
use crate::events::types::find;

/// Read an event as the class of its type; a type that the catalogue does not have is `Other`.
pub fn typed(event: &Event) -> Result<Known> {
    let Some(kind) = find(&event.event_type) else { return Ok(Known::Other) };
    for name in kind.required_meta {
        if !event.meta.contains_key(*name) {
            return Err(Error(format!("{}: its routing value {name} is missing", kind.name)));
        }
    }
    match event.event_type.split_once('.').unwrap_or_default() {
        ("command", change) => command(event, change),
        ("frame", change) => frame(event, change),
        ("loop", change) => loops(event, change),
        ("stage", change) => stage(event, change),
        ("step", change) => step(event, change),
        ("result", change) => result(event, change),
        _ => whole(event),
    }
}

fn whole(event: &Event) -> Result<Known> {
    let status = event.status.clone().unwrap_or_default();
    let (error, payload) = (event.error.clone(), event.payload_ref.clone());
    let result = event.result.as_object().cloned();
    Ok(match event.event_type.as_str() {
        "playbook.initialized" => {
            Known::PlaybookInitialized { path: event.text("path")?, version: event.id("version")? }
        }
        "playbook.completed" => Known::PlaybookCompleted { status, result, error, payload },
        "playbook.failed" => {
            Known::PlaybookFailed { result, error: error.unwrap_or_default(), payload }
        }
        "execution.cancelled" => Known::ExecutionCancelled { error },
        "execution.suspended" => Known::ExecutionSuspended { reason: event.text("reason")? },
        "execution.resumed" => Known::ExecutionResumed,
        "execution.forked" => Known::ExecutionForked { entered: entered(event)? },
        "redrive.requested" => Known::RedriveRequested,
        _ => Known::Other,
    })
}

fn entered(event: &Event) -> Result<Vec<(String, i64)>> {
    let Some(found) = event.context["activations"].as_array() else { return Ok(Vec::new()) };
    let one = |of: &Value| Some((of["step"].as_str()?.to_owned(), of["number"].as_i64()?));
    let read = |of| one(of).ok_or_else(|| Error(format!("not an activation: {of}")));
    found.iter().map(read).collect()
}

fn step(event: &Event, change: &str) -> Result<Known> {
    let (node, activation) = (event.node(), event.id("activation")?);
    if change == "enter" {
        return Ok(Known::StepEnter { node, activation });
    }
    Ok(Known::StepExit {
        node,
        activation,
        status: event.status.clone().unwrap_or_default(),
        error: event.error.clone(),
        then: text_in(&event.result, "then"),
    })
}

fn command(event: &Event, change: &str) -> Result<Known> {
    let error = event.error.clone().unwrap_or_default();
    let output = event.payload_ref.clone();
    let change = match change {
        "issued" => CommandChange::Issued {
            attempt: event.id("attempt")?,
            pool: event.text("pool")?,
            tool: event.text("tool")?,
            activation: event.id("activation")?,
        },
        "claimed" | "heartbeat" => CommandChange::Leased {
            worker: event.text("worker")?,
            seconds: event.id("lease_seconds")?,
            is_claim: change == "claimed",
        },
        "completed" => CommandChange::Completed { output },
        "failed" => CommandChange::Failed { error, output },
        "lease_expired" => {
            let reason = event.maybe_text("reason");
            let why = lost(event, reason.as_deref().filter(|one| !one.is_empty()))?;
            CommandChange::LeaseExpired { why }
        }
        "released" => CommandChange::Released,
        "cancelled" => CommandChange::Cancelled,
        _ => CommandChange::Started,
    };
    Ok(Known::Command(CommandEvent {
        command_id: event.id("command_id")?,
        node: event.node(),
        change,
    }))
}

fn stage(event: &Event, change: &str) -> Result<Known> {
    let stage_id = event.id("stage_id")?;
    if change == "closed" {
        return Ok(Known::StageClosed {
            stage_id,
            status: event.status.clone().unwrap_or_default(),
        });
    }
    let activation = event.context.get("activation").and_then(Value::as_i64);
    Ok(Known::StageOpened(Box::new(StageOpened {
        node: event.node(),
        stage_id,
        loop_id: event.id("loop_id")?,
        kind: event.text("kind")?,
        dsl_ref: event.text("dsl_ref")?,
        total_rows: event.maybe_id("total_rows")?,
        activation: activation.unwrap_or(0),
        policy: object_in(&event.context, "policy").unwrap_or_default(),
    })))
}

fn frame(event: &Event, change: &str) -> Result<Known> {
    let cursor = object_in(&event.context, "cursor");
    let change = match change {
        "dispatched" => FrameChange::Dispatched {
            attempt: event.id("attempt")?,
            ordinal: event.id("ordinal")?,
            shard_id: event.maybe_text("shard_id"),
            cursor: cursor.unwrap_or_default(),
        },
        "claimed" => FrameChange::Claimed {
            worker: event.text("worker")?,
            seconds: event.id("lease_seconds")?,
        },
        "heartbeat" => FrameChange::Heartbeat {
            worker: event.text("worker")?,
            seconds: event.id("lease_seconds")?,
            cursor,
            rows: checkpoint_rows(event)?,
            failed_rows: event.maybe_id("failed_rows")?.unwrap_or(0),
        },
        "committed" => FrameChange::Committed {
            rows: event.id("rows")?,
            failed_rows: event.id("failed_rows")?,
            continues: event.flag("continues")?,
            cursor,
            output: event.payload_ref.clone(),
        },
        "failed" => FrameChange::Failed { error: event.error.clone().unwrap_or_default() },
        "lease_expired" => {
            let restarted = event.text("reason")? == "restarted";
            let why = lost(event, restarted.then_some("its worker began a new life"))?;
            FrameChange::LeaseExpired { why }
        }
        "released" => FrameChange::Released { cursor },
        "abandoned" => FrameChange::Abandoned { error: event.error.clone() },
        _ => return Ok(Known::Other),
    };
    let (frame_id, stage_id) = (event.id("frame_id")?, event.id("stage_id")?);
    Ok(Known::Frame(Box::new(FrameEvent { frame_id, stage_id, node: event.node(), change })))
}

fn loops(event: &Event, change: &str) -> Result<Known> {
    let (node, loop_id) = (event.node(), event.id("loop_id")?);
    Ok(match change {
        "started" => Known::LoopStarted {
            node,
            loop_id,
            mode: event.text("mode")?,
            collection_size: event.maybe_id("collection_size")?,
            collection_ref: text_in(&event.context, "collection_ref"),
        },
        "done" => Known::LoopDone { node },
        "fanout.started" => {
            Known::LoopFanoutStarted { node, loop_id, total_shards: event.id("total_shards")? }
        }
        "fanin.completed" => {
            Known::LoopFaninCompleted { node, status: event.status.clone().unwrap_or_default() }
        }
        _ => Known::Other,
    })
}

fn result(event: &Event, change: &str) -> Result<Known> {
    let result_id = event.id("result_id")?;
    if change == "expired" {
        return Ok(Known::ResultExpired { result_id });
    }
    Ok(Known::ResultStored(Box::new(ResultStored {
        node: event.node(),
        result_id,
        store: event.text("store")?,
        scope: event.text("scope")?,
        task: event.maybe_text("task"),
        parent_result_id: event.maybe_id("parent_result_id")?,
        expires_at: event.maybe_text("expires_at"),
        result: event.result.as_object().cloned().unwrap_or_default(),
    })))
}

/// Why a lease ended before its owner released it (streams/execution/lease.py).
fn lost(event: &Event, reason: Option<&str>) -> Result<String> {
    let worker = event.text("worker")?;
    Ok(match reason {
        Some(reason) => format!("{worker} lost it: {reason}"),
        None => format!("the lease of {worker} ran out"),
    })
}

/// How many rows a checkpoint covers; early events only have their output's (streams/results/manifest.py).
fn checkpoint_rows(event: &Event) -> Result<i64> {
    let of_output = event.payload_ref.as_ref().and_then(|one| one.row_count);
    Ok(event.maybe_id("rows")?.or(of_output).unwrap_or(0))
}
