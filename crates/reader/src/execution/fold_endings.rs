//! The fold of whole executions: forked, suspended, resumed, ended, redriven
//! (streams/execution/fold_endings.py, fold_fork.py).

use crate::events::known::Known;
use crate::events::model::PayloadRef;
use crate::execution::plan::{key_of, Activation, Plan};
use crate::json::Object;

pub fn apply(plan: &mut Plan, known: &Known, at: i64) {
    match known {
        Known::PlaybookCompleted { status, result, error, payload } => {
            let status = if status == "PARTIAL" { "PARTIAL" } else { "COMPLETED" };
            end(plan, status, at, result.clone(), payload.clone(), error.clone());
        }
        Known::PlaybookFailed { result, error, payload } => {
            end(plan, "FAILED", at, result.clone(), payload.clone(), Some(error.clone()));
        }
        Known::ExecutionCancelled { error } => {
            end(plan, "CANCELLED", at, None, None, error.clone())
        }
        Known::ExecutionSuspended { reason } => {
            plan.is_suspended = true;
            plan.suspension = Some(reason.clone());
        }
        Known::ExecutionForked { entered } => {
            for (step, visit) in entered {
                plan.activations.insert(key_of(step, *visit), Activation::default());
            }
        }
        Known::ExecutionResumed => {
            plan.is_suspended = false;
            plan.suspension = None;
        }
        Known::RedriveRequested => {
            plan.status = "RUNNING";
            plan.ended_at = None;
            plan.error = None;
            plan.failure = None;
        }
        _ => {}
    }
}

fn end(
    plan: &mut Plan,
    status: &'static str,
    at: i64,
    result: Option<Object>,
    output: Option<PayloadRef>,
    error: Option<String>,
) {
    if plan.has_ended() {
        return; // a terminal status is sticky
    }
    plan.status = status;
    plan.ended_at = Some(at);
    plan.result = result;
    plan.output = output;
    plan.error = error;
    plan.activations.clear();
    plan.commands.clear();
    plan.stages.clear();
}
