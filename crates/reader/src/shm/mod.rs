//! Regions of shared memory (streams/payload/shm/).

pub mod header;
pub mod region;
pub mod rows;
