//! Payloads: stored objects, their packing, and Arrow streams (streams/payload/).

pub mod arrow_rows;
pub mod arrow_schema;
pub mod blocks;
pub mod objects;
