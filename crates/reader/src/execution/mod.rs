//! State of an execution and its fold (streams/execution/).
//!
//! What no row shows is left out: `ctx`, results of steps, workloads, documents, retries.

pub mod command;
pub mod evolve;
pub mod fold_endings;
pub mod fold_loops;
pub mod fold_steps;
pub mod frame;
pub mod lease;
pub mod plan;
pub mod stage;
