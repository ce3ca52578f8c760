//! The fold of loops: their stages, frames and fan-outs (streams/execution/fold_loops.py).

use serde_json::{json, Value};

use crate::error::Result;
use crate::events::known::{FrameChange, FrameEvent, Known};
use crate::execution::plan::{key_of, Plan};
use crate::execution::stage::{absorb_in_stage, close_stage, open_stage};
use crate::json::Object;

pub fn apply(plan: &mut Plan, known: &Known, at: i64) -> Result<()> {
    match known {
        Known::StageOpened(event) => {
            let stage = open_stage(event, at);
            if let Some(activation) =
                plan.activations.get_mut(&key_of(&stage.step, stage.activation))
            {
                activation.stage_id = Some(stage.stage_id);
            }
            plan.stages.insert(stage.stage_id, stage);
        }
        Known::StageClosed { stage_id, status } => {
            if let Some(stage) = plan.stages.get_mut(stage_id) {
                close_stage(stage, status, at);
            }
        }
        Known::Frame(event) => frame(plan, event, at)?,
        Known::LoopStarted { node, loop_id, mode, collection_size, collection_ref } => {
            let started = json!({
                "loop_id": loop_id.to_string(),
                "total": collection_size,
                "done": 0,
                "failed": 0,
                "collection_ref": collection_ref,
                "mode": mode,
                "completed": false,
            });
            plan.loops.insert(node.clone(), object(started));
        }
        Known::LoopDone { node } => {
            plan.loops.entry(node.clone()).or_default().insert("completed".into(), true.into());
        }
        Known::LoopFanoutStarted { node, loop_id, total_shards } => {
            let started = json!({
                "loop_id": loop_id.to_string(),
                "total_shards": total_shards,
                "done": 0,
                "failed": 0,
                "status": "running",
            });
            plan.fanouts.insert(node.clone(), object(started));
        }
        Known::LoopFaninCompleted { node, status } => {
            let status = if status.is_empty() { "completed" } else { status };
            plan.fanouts.entry(node.clone()).or_default().insert("status".into(), status.into());
        }
        _ => {}
    }
    Ok(())
}

fn frame(plan: &mut Plan, event: &FrameEvent, at: i64) -> Result<()> {
    let Some(stage) = plan.stages.get_mut(&event.stage_id) else { return Ok(()) };
    let is_dispatch = matches!(event.change, FrameChange::Dispatched { .. });
    if !stage.frames.contains_key(&event.frame_id) && !is_dispatch {
        return Ok(());
    }
    let done_before = stage.frames_done;
    absorb_in_stage(stage, event, at)?;
    if stage.frames_done != done_before {
        let counted = plan.loops.entry(stage.step.clone()).or_default();
        count(counted, stage.rows_done, stage.rows_failed);
        if stage.kind == "fanout" {
            let counted = plan.fanouts.entry(stage.step.clone()).or_default();
            count(counted, stage.shards_done, stage.shards_failed);
        }
    }
    Ok(())
}

fn count(progress: &mut Object, done: i64, failed: i64) {
    progress.insert("done".into(), done.into());
    progress.insert("failed".into(), failed.into());
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}
