//! A command: one tool step outside a loop, run by one worker (streams/execution/command.py).

use crate::error::{Error, Result};
use crate::events::known::{CommandChange, CommandEvent};
use crate::events::model::PayloadRef;
use crate::execution::lease::Lease;

#[derive(Debug, Clone)]
pub struct Command {
    pub command_id: i64,
    pub step: String,
    pub activation: i64,
    pub tool: String,
    pub pool: String,
    pub created_at: i64,
    pub attempt: i64,
    /// Counts the events of its stream.
    pub version: i64,
    pub status: &'static str,
    pub lease: Option<Lease>,
    pub output: Option<PayloadRef>,
    pub error: Option<String>,
}

impl Command {
    pub fn has_ended(&self) -> bool {
        matches!(self.status, "COMPLETED" | "FAILED" | "CANCELLED")
    }

    /// Whether a worker may claim it.
    pub fn waits(&self) -> bool {
        matches!(self.status, "PENDING" | "EXPIRED" | "RELEASED")
    }
}

/// The command after one of its events.
pub fn absorb_command(known: Option<&Command>, event: &CommandEvent, at: i64) -> Result<Command> {
    let Some(before) = known else { return issued(event, at) };
    let mut command = before.clone();
    command.version += 1;
    match &event.change {
        CommandChange::Leased { worker, seconds, is_claim } => {
            command.lease = Some(Lease { owner: worker.clone(), since: at, seconds: *seconds });
            if *is_claim {
                command.status = "CLAIMED";
            }
        }
        CommandChange::Completed { output } => {
            command.status = "COMPLETED";
            (command.lease, command.error) = (None, None);
            command.output = output.clone();
        }
        CommandChange::Failed { error, output } => {
            command.status = "FAILED";
            (command.lease, command.error) = (None, Some(error.clone()));
            command.output = output.clone();
        }
        CommandChange::LeaseExpired { why } => {
            command.status = "EXPIRED";
            command.attempt += 1;
            (command.lease, command.error) = (None, Some(why.clone()));
        }
        CommandChange::Released => {
            command.status = "RELEASED";
            command.attempt += 1;
            command.lease = None;
        }
        CommandChange::Cancelled => {
            command.status = "CANCELLED";
            command.lease = None;
        }
        CommandChange::Issued { .. } | CommandChange::Started => {}
    }
    Ok(command)
}

fn issued(event: &CommandEvent, at: i64) -> Result<Command> {
    let CommandChange::Issued { attempt, pool, tool, activation } = &event.change else {
        return Err(Error(format!(
            "command {}: an event comes before it was issued",
            event.command_id
        )));
    };
    Ok(Command {
        command_id: event.command_id,
        step: event.node.clone(),
        activation: *activation,
        tool: tool.clone(),
        pool: pool.clone(),
        created_at: at,
        attempt: *attempt,
        version: 1,
        status: "PENDING",
        lease: None,
        output: None,
        error: None,
    })
}
