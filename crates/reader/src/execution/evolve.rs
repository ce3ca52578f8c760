//! The fold: an execution's state after one more event (streams/execution/evolve.py).

use indexmap::IndexMap;

use crate::error::{Error, Result};
use crate::events::known::Known;
use crate::events::model::Event;
use crate::events::types::find;
use crate::execution::plan::Plan;
use crate::execution::{fold_endings, fold_loops, fold_steps};

/// The plan after a new event, which its caller has read as `known`.
pub fn evolve(before: Option<&Plan>, event: &Event, known: &Known) -> Result<Plan> {
    let after_seq = before.map_or(0, |plan| plan.seq);
    if event.seq() != after_seq + 1 {
        return Err(Error(format!(
            "{}: has events up to {after_seq}, was given {}",
            event.root(),
            event.seq()
        )));
    }
    let Some(before) = before else { return begun(event, known) };
    let mut plan = before.clone();
    let at = event.at();
    match known {
        Known::StepEnter { .. } | Known::StepExit { .. } | Known::Command(_) => {
            fold_steps::apply(&mut plan, known, at)?
        }
        Known::StageOpened(_)
        | Known::StageClosed { .. }
        | Known::Frame(_)
        | Known::LoopStarted { .. }
        | Known::LoopDone { .. }
        | Known::LoopFanoutStarted { .. }
        | Known::LoopFaninCompleted { .. } => fold_loops::apply(&mut plan, known, at)?,
        _ => fold_endings::apply(&mut plan, known, at),
    }
    plan.last_event_type = event.event_type.clone();
    // A type that steps do not name is read without a name; an unknown one with what it has.
    let has_node = find(&event.event_type).is_none_or(|kind| kind.has_node);
    if let Some(name) = event.node_name.as_ref().filter(|name| has_node && !name.is_empty()) {
        plan.last_node_name = Some(name.clone());
    }
    plan.last_event_id = event.event_id;
    plan.seq = event.seq();
    Ok(plan)
}

/// The plan that `playbook.initialized` starts.
fn begun(event: &Event, known: &Known) -> Result<Plan> {
    let Known::PlaybookInitialized { path, version } = known else {
        let (root, kind) = (event.root(), &event.event_type);
        return Err(Error(format!("{root}: begins with {kind}, not with playbook.initialized")));
    };
    Ok(Plan {
        execution_id: event.root_id,
        tenant_id: event.tenant_id.clone(),
        organization_id: event.organization_id.clone(),
        catalog_id: event.catalog_id.unwrap_or(0),
        catalog_version: *version,
        path: path.clone(),
        started_at: event.at(),
        seq: 1,
        status: "RUNNING",
        is_suspended: false,
        suspension: None,
        parent_execution_id: event.parent_execution_id,
        activations: IndexMap::new(),
        commands: IndexMap::new(),
        stages: IndexMap::new(),
        loops: IndexMap::new(),
        fanouts: IndexMap::new(),
        failure: None,
        result: None,
        output: None,
        error: None,
        ended_at: None,
        last_event_type: event.event_type.clone(),
        last_event_id: event.event_id,
        last_node_name: None,
    })
}
