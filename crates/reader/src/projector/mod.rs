//! The projector's rows and their checksums (streams/projector/).

pub mod core;
pub mod digests;
pub mod results;
pub mod rows;
pub mod shapes;
