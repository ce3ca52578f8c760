//! The fold of steps and their commands (streams/execution/fold_steps.py).

use crate::error::Result;
use crate::events::known::{CommandChange, CommandEvent, Known};
use crate::execution::command::absorb_command;
use crate::execution::plan::{key_of, Activation, Plan};

pub fn apply(plan: &mut Plan, known: &Known, at: i64) -> Result<()> {
    match known {
        Known::StepEnter { node, activation } => {
            plan.activations.insert(key_of(node, *activation), Activation::default());
        }
        Known::StepExit { node, activation, status, error, then } => {
            if let Some(ended) = plan.activations.shift_remove(&key_of(node, *activation)) {
                drop_parts(plan, &ended);
            }
            let is_survived = matches!(then.as_deref(), Some("continue" | "handled"));
            if status == "error" && !is_survived && plan.failure.is_none() {
                plan.failure = Some(error.clone());
            }
        }
        Known::Command(event) => command(plan, event, at)?,
        _ => {}
    }
    Ok(())
}

/// Drop what a finished step had open.
fn drop_parts(plan: &mut Plan, ended: &Activation) {
    plan.commands.retain(|id, _| Some(*id) != ended.command_id && Some(*id) != ended.planning_id);
    plan.stages.retain(|id, _| Some(*id) != ended.stage_id);
}

fn command(plan: &mut Plan, event: &CommandEvent, at: i64) -> Result<()> {
    let known = plan.commands.get(&event.command_id);
    let is_new = known.is_none();
    if is_new && !matches!(event.change, CommandChange::Issued { .. }) {
        return Ok(()); // it was dropped with its step
    }
    let command = absorb_command(known, event, at)?;
    if is_new {
        if let Some(activation) =
            plan.activations.get_mut(&key_of(&command.step, command.activation))
        {
            match command.tool.as_str() {
                "cursor.plan" => activation.planning_id = Some(event.command_id),
                _ => activation.command_id = Some(event.command_id),
            }
        }
    }
    plan.commands.insert(event.command_id, command);
    Ok(())
}
