//! A stage: one loop, fan-out or reduce step, and its open frames (streams/execution/stage.py).

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::known::{FrameEvent, StageOpened};
use crate::execution::frame::{absorb_frame, Frame};
use crate::json::{python_str, Object};

#[derive(Debug, Clone)]
pub struct Stage {
    pub stage_id: i64,
    pub loop_id: i64,
    pub step: String,
    pub activation: i64,
    pub kind: String,
    pub dsl_ref: String,
    pub policy: Object,
    pub opened_at: i64,
    pub total_rows: Option<i64>,
    pub frames_made: i64,
    /// Open frames, in the order in which they were dispatched.
    pub frames: IndexMap<i64, Frame>,
    /// Frames that closed early with failed rows, theirs or those of the frame they continued.
    pub unwell: BTreeSet<i64>,
    pub shards_done: i64,
    pub shards_failed: i64,
    pub frames_done: i64,
    pub rows_done: i64,
    pub rows_failed: i64,
    pub failure: Option<String>,
    pub status: &'static str,
    pub ended_at: Option<i64>,
}

pub fn open_stage(event: &StageOpened, at: i64) -> Stage {
    Stage {
        stage_id: event.stage_id,
        loop_id: event.loop_id,
        step: event.node.clone(),
        activation: event.activation,
        kind: event.kind.clone(),
        dsl_ref: event.dsl_ref.clone(),
        policy: event.policy.clone(),
        opened_at: at,
        total_rows: event.total_rows,
        frames_made: 0,
        frames: IndexMap::new(),
        unwell: BTreeSet::new(),
        shards_done: 0,
        shards_failed: 0,
        frames_done: 0,
        rows_done: 0,
        rows_failed: 0,
        failure: None,
        status: "OPEN",
        ended_at: None,
    }
}

/// Change the stage by an event of one of its frames.
pub fn absorb_in_stage(stage: &mut Stage, event: &FrameEvent, at: i64) -> Result<()> {
    let known = stage.frames.get(&event.frame_id);
    let is_new = known.is_none();
    let frame = absorb_frame(known, event, at)?;
    if is_new {
        stage.frames_made += 1;
    }
    if !frame.has_ended() {
        stage.frames.insert(event.frame_id, frame);
        return Ok(());
    }
    stage.frames.shift_remove(&event.frame_id);
    match frame.status {
        "COMMITTED" => committed(stage, &frame)?,
        _ => abandoned(stage, &frame),
    }
    stage.frames_done += 1;
    stage.rows_done += frame.row_count - frame.failed_rows;
    stage.rows_failed += frame.failed_rows;
    Ok(())
}

pub fn close_stage(stage: &mut Stage, status: &str, at: i64) {
    stage.status = if status == "failed" { "FAILED" } else { "CLOSED" };
    stage.ended_at = Some(at);
}

fn abandoned(stage: &mut Stage, frame: &Frame) {
    stage.shards_failed += 1;
    if stage.failure.is_none() {
        let error =
            frame.error.as_deref().filter(|text| !text.is_empty()).unwrap_or("no error message");
        let (ordinal, window, failures) = (frame.ordinal, window(frame), frame.failures);
        stage.failure =
            Some(format!("frame {ordinal} ({window}) failed {failures} times: {error}"));
    }
}

/// Count a shard when its last frame is committed; a failed row in any frame fails it.
fn committed(stage: &mut Stage, frame: &Frame) -> Result<()> {
    if stage.kind != "fanout" {
        return Ok(());
    }
    let before = continued(frame)?;
    let is_unwell = frame.failed_rows > 0 || before.is_some_and(|one| stage.unwell.contains(&one));
    if let Some(before) = before {
        stage.unwell.remove(&before);
    }
    match (frame.continues, is_unwell) {
        (true, true) => drop(stage.unwell.insert(frame.frame_id)),
        (true, false) => {}
        (false, true) => stage.shards_failed += 1,
        (false, false) => stage.shards_done += 1,
    }
    Ok(())
}

/// The frame that this one continues.
fn continued(frame: &Frame) -> Result<Option<i64>> {
    let found = match frame.cursor.get("continues") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_i64(),
    };
    found
        .map(Some)
        .ok_or_else(|| Error(format!("frame {}: `continues` is not an id", frame.frame_id)))
}

fn window(frame: &Frame) -> String {
    let shown = frame.cursor.iter().filter(|(name, _)| *name != "kind" && *name != "continues");
    let parts: Vec<_> =
        shown.map(|(name, value)| format!("{name} {}", python_str(value))).collect();
    if parts.is_empty() {
        "claimed rows".to_owned()
    } else {
        parts.join(", ")
    }
}
