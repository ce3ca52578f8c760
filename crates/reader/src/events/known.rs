//! Classes of events: one variant for each that changes something (streams/events/types.py).

use crate::events::model::PayloadRef;
use crate::json::Object;

/// A typed event. `Other` changes only what was seen last.
pub enum Known {
    PlaybookInitialized {
        path: String,
        version: i64,
    },
    PlaybookCompleted {
        status: String,
        result: Option<Object>,
        error: Option<String>,
        payload: Option<PayloadRef>,
    },
    PlaybookFailed {
        result: Option<Object>,
        error: String,
        payload: Option<PayloadRef>,
    },
    ExecutionCancelled {
        error: Option<String>,
    },
    ExecutionSuspended {
        reason: String,
    },
    ExecutionResumed,
    ExecutionForked {
        /// The names and visits of the steps that are entered again.
        entered: Vec<(String, i64)>,
    },
    RedriveRequested,
    StepEnter {
        node: String,
        activation: i64,
    },
    StepExit {
        node: String,
        activation: i64,
        status: String,
        error: Option<String>,
        then: Option<String>,
    },
    Command(CommandEvent),
    StageOpened(Box<StageOpened>),
    StageClosed {
        stage_id: i64,
        status: String,
    },
    Frame(Box<FrameEvent>),
    LoopStarted {
        node: String,
        loop_id: i64,
        mode: String,
        collection_size: Option<i64>,
        collection_ref: Option<String>,
    },
    LoopDone {
        node: String,
    },
    LoopFanoutStarted {
        node: String,
        loop_id: i64,
        total_shards: i64,
    },
    LoopFaninCompleted {
        node: String,
        status: String,
    },
    ResultStored(Box<ResultStored>),
    ResultExpired {
        result_id: i64,
    },
    Other,
}

pub struct CommandEvent {
    pub command_id: i64,
    pub node: String,
    pub change: CommandChange,
}

pub enum CommandChange {
    Issued { attempt: i64, pool: String, tool: String, activation: i64 },
    Leased { worker: String, seconds: i64, is_claim: bool },
    Completed { output: Option<PayloadRef> },
    Failed { error: String, output: Option<PayloadRef> },
    LeaseExpired { why: String },
    Released,
    Cancelled,
    Started,
}

pub struct StageOpened {
    pub node: String,
    pub stage_id: i64,
    pub loop_id: i64,
    pub kind: String,
    pub dsl_ref: String,
    pub total_rows: Option<i64>,
    pub activation: i64,
    pub policy: Object,
}

pub struct FrameEvent {
    pub frame_id: i64,
    pub stage_id: i64,
    pub node: String,
    pub change: FrameChange,
}

pub enum FrameChange {
    Dispatched {
        attempt: i64,
        ordinal: i64,
        shard_id: Option<String>,
        cursor: Object,
    },
    Claimed {
        worker: String,
        seconds: i64,
    },
    Heartbeat {
        worker: String,
        seconds: i64,
        cursor: Option<Object>,
        rows: i64,
        failed_rows: i64,
    },
    Committed {
        rows: i64,
        failed_rows: i64,
        continues: bool,
        cursor: Option<Object>,
        output: Option<PayloadRef>,
    },
    Failed {
        error: String,
    },
    LeaseExpired {
        why: String,
    },
    Released {
        cursor: Option<Object>,
    },
    Abandoned {
        error: Option<String>,
    },
}

pub struct ResultStored {
    pub node: String,
    pub result_id: i64,
    pub store: String,
    pub scope: String,
    pub task: Option<String>,
    pub parent_result_id: Option<i64>,
    pub expires_at: Option<String>,
    pub result: Object,
}
