//! Format of packed objects: self-describing blocks (streams/payload/objects/blocks.py).

use std::io::Read;

use crate::error::{Error, Result};

const MARK_BYTES: usize = 24;
/// What every mark begins with: magic, length, name and version.
const LEAD: &[u8; 14] = b"\x5e\x2a\x4d\x18\x10\x00\x00\x00NOETL\x01";
/// Most plain bytes of a block: more is rejected, which bounds memory.
const LARGEST_BLOCK_BYTES: usize = 16 << 20;

/// The payload in a stored object. One that does not begin with a mark is the payload itself.
pub fn unpack(stored: &[u8]) -> Result<Vec<u8>> {
    if !stored.starts_with(LEAD) {
        return Ok(stored.to_vec());
    }
    let (mut plain, mut rest) = (Vec::new(), stored);
    while !rest.is_empty() {
        if rest.len() < MARK_BYTES || !rest.starts_with(LEAD) {
            return Err(Error::new("the stored object has no mark where a block should begin"));
        }
        let (codec, cipher) = (rest[14], rest[15]);
        let (stored_bytes, plain_bytes) = (number(&rest[16..20]), number(&rest[20..24]));
        if cipher != 0 {
            return Err(Error(format!("the stored object is sealed by cipher {cipher}")));
        }
        if plain_bytes > LARGEST_BLOCK_BYTES || rest.len() < MARK_BYTES + stored_bytes {
            return Err(Error::new(
                "the stored object has a block that is too large, or ends within one",
            ));
        }
        let block = opened(&rest[MARK_BYTES..MARK_BYTES + stored_bytes], codec, plain_bytes)?;
        if block.len() != plain_bytes {
            return Err(Error(format!(
                "a block has {} bytes, not {plain_bytes} as its mark says",
                block.len()
            )));
        }
        plain.extend_from_slice(&block);
        rest = &rest[MARK_BYTES + stored_bytes..];
    }
    Ok(plain)
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
}

fn opened(block: &[u8], codec: u8, plain_bytes: usize) -> Result<Vec<u8>> {
    match codec {
        0 => Ok(block.to_vec()),
        1 => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(block);
            read(decoder.map_err(|why| Error(format!("not zstd: {why}")))?, plain_bytes)
        }
        2 => read(flate2::read::MultiGzDecoder::new(block), plain_bytes),
        3 => read(lz4_flex::frame::FrameDecoder::new(block), plain_bytes),
        other => Err(Error(format!("the stored object is packed by the unknown codec {other}"))),
    }
}

/// Read at most one byte more than the mark says.
fn read(source: impl Read, plain_bytes: usize) -> Result<Vec<u8>> {
    let mut found = Vec::with_capacity(plain_bytes);
    let limit = plain_bytes as u64 + 1;
    let outcome = source.take(limit).read_to_end(&mut found);
    outcome.map_err(|why| Error(format!("the stored object cannot be unpacked: {why}")))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_joined_and_other_bytes_are_the_payload() {
        let mark =
            |length: u8| [LEAD.as_slice(), &[0, 0, length, 0, 0, 0, length, 0, 0, 0]].concat();
        let stored = [mark(2), b"ab".to_vec(), mark(1), b"c".to_vec()].concat();
        assert_eq!(unpack(&stored).unwrap(), b"abc");
        assert_eq!(unpack(b"plain").unwrap(), b"plain");
        assert!(unpack(&stored[..stored.len() - 1]).is_err());
    }
}
