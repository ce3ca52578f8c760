//! A frame: a window of a stage's rows, and the progress of its attempt (streams/execution/frame.py).

use crate::error::{Error, Result};
use crate::events::known::{FrameChange, FrameEvent};
use crate::events::model::PayloadRef;
use crate::execution::lease::Lease;
use crate::json::Object;

#[derive(Debug, Clone)]
pub struct Frame {
    pub frame_id: i64,
    pub stage_id: i64,
    pub step: String,
    pub ordinal: i64,
    pub shard_id: Option<String>,
    pub cursor: Object,
    pub created_at: i64,
    pub attempt: i64,
    /// Counts the events of its stream.
    pub version: i64,
    pub failures: i64,
    pub status: &'static str,
    pub lease: Option<Lease>,
    /// Rows that are done: those of its checkpoints, and of its commit.
    pub row_count: i64,
    pub failed_rows: i64,
    pub continues: bool,
    pub end_cursor: Option<Object>,
    pub output: Option<PayloadRef>,
    pub error: Option<String>,
}

impl Frame {
    pub fn has_ended(&self) -> bool {
        matches!(self.status, "COMMITTED" | "ABANDONED")
    }
}

/// The frame after one of its events.
pub fn absorb_frame(known: Option<&Frame>, event: &FrameEvent, at: i64) -> Result<Frame> {
    let Some(before) = known else { return dispatched(event, at) };
    let mut frame = before.clone();
    frame.version += 1;
    match &event.change {
        FrameChange::Claimed { worker, seconds } => {
            frame.status = "CLAIMED";
            frame.lease = Some(Lease { owner: worker.clone(), since: at, seconds: *seconds });
        }
        FrameChange::Committed { rows, failed_rows, continues, cursor, output } => {
            frame.status = "COMMITTED";
            (frame.lease, frame.error) = (None, None);
            frame.row_count += rows;
            frame.failed_rows += failed_rows;
            frame.continues = *continues;
            frame.end_cursor = cursor.clone();
            frame.output = output.clone();
        }
        FrameChange::Heartbeat { worker, seconds, cursor, rows, failed_rows } => {
            frame.lease = Some(Lease { owner: worker.clone(), since: at, seconds: *seconds });
            if let Some(cursor) = cursor {
                frame.cursor = moved(before, cursor);
                frame.row_count += rows;
                frame.failed_rows += failed_rows;
            }
        }
        FrameChange::Dispatched { attempt, cursor, .. } => {
            frame.status = "PENDING";
            frame.attempt = *attempt;
            frame.cursor = cursor.clone();
            frame.lease = None;
        }
        FrameChange::Failed { error } => {
            frame.status = "FAILED";
            frame.failures += 1;
            (frame.lease, frame.error) = (None, Some(error.clone()));
        }
        FrameChange::LeaseExpired { why } => {
            frame.status = "EXPIRED";
            frame.failures += 1;
            (frame.lease, frame.error) = (None, Some(why.clone()));
        }
        FrameChange::Released { cursor } => {
            frame.status = "RELEASED";
            frame.lease = None;
            if let Some(cursor) = cursor {
                frame.cursor = moved(before, cursor);
            }
        }
        FrameChange::Abandoned { error } => {
            frame.status = "ABANDONED";
            frame.lease = None;
            if let Some(error) = error.as_ref().filter(|text| !text.is_empty()) {
                frame.error = Some(error.clone());
            }
        }
    }
    Ok(frame)
}

fn dispatched(event: &FrameEvent, at: i64) -> Result<Frame> {
    let FrameChange::Dispatched { attempt, ordinal, shard_id, cursor } = &event.change else {
        return Err(Error(format!(
            "frame {}: an event comes before it was dispatched",
            event.frame_id
        )));
    };
    Ok(Frame {
        frame_id: event.frame_id,
        stage_id: event.stage_id,
        step: event.node.clone(),
        ordinal: *ordinal,
        shard_id: shard_id.clone(),
        cursor: cursor.clone(),
        created_at: at,
        attempt: *attempt,
        version: 1,
        failures: 0,
        status: "PENDING",
        lease: None,
        row_count: 0,
        failed_rows: 0,
        continues: false,
        end_cursor: None,
        output: None,
        error: None,
    })
}

/// A later cursor of a frame, which still continues the same frame.
fn moved(frame: &Frame, cursor: &Object) -> Object {
    let mut cursor = cursor.clone();
    if let Some(before) = frame.cursor.get("continues") {
        cursor.insert("continues".into(), before.clone());
    }
    cursor
}
