//! Fold of an execution's events into its rows (streams/projector/core.py).

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::events::known::{FrameEvent, Known};
use crate::events::model::Event;
use crate::events::typed::typed;
use crate::execution::evolve::evolve;
use crate::execution::frame::absorb_frame;
use crate::execution::plan::Plan;
use crate::projector::digests::{state_checksums, Checksums, EndedRows, RowChain};
use crate::projector::results::{expired_row, stored_row};
use crate::projector::rows::Row;
use crate::projector::shapes::{command_row, execution_row, frame_row, stage_row, Ending};

/// An execution as of its last event: the fold, and what only rows need.
#[derive(Default)]
pub struct View {
    plan: Option<Plan>,
    updated_at: i64,
    /// Which event led to each open stage.
    parents: HashMap<i64, Option<i64>>,
    ended: EndedRows,
    /// The digests of all payloads that its events refer to.
    pub payloads: RowChain,
}

impl View {
    /// Change the view by one more event; one that is absorbed already changes nothing.
    pub fn absorb(&mut self, event: &Event) -> Result<()> {
        if self.plan.as_ref().is_some_and(|plan| event.seq() <= plan.seq) {
            return Ok(());
        }
        let known = typed(event)?;
        let plan = evolve(self.plan.as_ref(), event, &known)?;
        if let Known::StageOpened(opened) = &known {
            self.parents.retain(|stage_id, _| plan.stages.contains_key(stage_id));
            self.parents.insert(opened.stage_id, event.causation_id);
        }
        for row in self.ended_rows(&plan, event, &known)? {
            self.ended.add(&row);
        }
        if let Some(reference) = &event.payload_ref {
            self.payloads.add(reference.sha256.as_bytes());
        }
        self.plan = Some(plan);
        self.updated_at = event.at();
        Ok(())
    }

    pub fn checksums(&self) -> Result<Checksums> {
        let plan = self.plan.as_ref().ok_or_else(|| Error::new("no event was absorbed"))?;
        Ok(state_checksums(
            &execution_row(plan, self.updated_at),
            &self.ended,
            &self.open_rows(plan),
        ))
    }

    /// The last rows of what an event ended.
    fn ended_rows(&self, plan: &Plan, event: &Event, known: &Known) -> Result<Vec<Row>> {
        let before = self.plan.as_ref();
        if let Some(before) = before.filter(|before| plan.has_ended() && !before.has_ended()) {
            return Ok(self.left_open(before, event));
        }
        let ending = Some(Ending { at: event.at(), is_cancelled: false });
        Ok(match known {
            Known::Frame(frame) => self.ended_frame(plan, event, frame, ending)?,
            Known::Command(command) => match plan.commands.get(&command.command_id) {
                Some(one) if one.has_ended() => vec![command_row(plan, one, event.seq(), ending)],
                _ => vec![],
            },
            Known::ResultStored(stored) => vec![stored_row(event, stored)?],
            Known::ResultExpired { result_id } => vec![expired_row(event, *result_id)],
            Known::StageClosed { stage_id, .. } => match plan.stages.get(stage_id) {
                Some(stage) => {
                    vec![stage_row(plan, stage, self.parent(*stage_id), event.seq(), None)]
                }
                None => vec![],
            },
            _ => vec![],
        })
    }

    /// The stage drops a frame that ends; its last state is still written.
    fn ended_frame(
        &self,
        plan: &Plan,
        event: &Event,
        frame: &FrameEvent,
        ending: Option<Ending>,
    ) -> Result<Vec<Row>> {
        let earlier = self.plan.as_ref().and_then(|before| before.stages.get(&frame.stage_id));
        let (Some(stage), Some(earlier)) = (plan.stages.get(&frame.stage_id), earlier) else {
            return Ok(vec![]);
        };
        if stage.frames.contains_key(&frame.frame_id) {
            return Ok(vec![]);
        }
        let Some(known) = earlier.frames.get(&frame.frame_id) else { return Ok(vec![]) };
        let last = absorb_frame(Some(known), frame, event.at())?;
        Ok(vec![frame_row(plan, &last, event.seq(), ending)])
    }

    /// The rows still open when the execution ended: they will never finish.
    fn left_open(&self, before: &Plan, event: &Event) -> Vec<Row> {
        let (seq, at) = (event.seq(), event.at());
        let ending = Some(Ending { at, is_cancelled: true });
        let mut rows = vec![];
        for stage in before.stages.values() {
            if stage.ended_at.is_none() {
                rows.push(stage_row(before, stage, self.parent(stage.stage_id), seq, Some(at)));
            }
            rows.extend(stage.frames.values().map(|frame| frame_row(before, frame, seq, ending)));
        }
        let commands = before.commands.values().filter(|command| !command.has_ended());
        rows.extend(commands.map(|command| command_row(before, command, seq, ending)));
        rows
    }

    /// The rows of everything that is open, without their place in the log.
    fn open_rows(&self, plan: &Plan) -> Vec<Row> {
        if plan.has_ended() {
            return vec![];
        }
        let mut rows = vec![];
        for stage in plan.stages.values() {
            if stage.ended_at.is_none() {
                rows.push(stage_row(plan, stage, self.parent(stage.stage_id), 0, None));
            }
            rows.extend(stage.frames.values().map(|frame| frame_row(plan, frame, 0, None)));
        }
        let commands = plan.commands.values().filter(|command| !command.has_ended());
        rows.extend(commands.map(|command| command_row(plan, command, 0, None)));
        rows
    }

    fn parent(&self, stage_id: i64) -> Option<i64> {
        self.parents.get(&stage_id).copied().flatten()
    }
}
