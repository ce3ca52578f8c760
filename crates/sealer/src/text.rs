//! What text an envelope may hold: the rules of streams/events/rules.py that text keeps.

pub const MAX_NAME_CHARS: usize = 200;
pub const MAX_KEY_CHARS: usize = 512;

/// 1 to `limit` characters, none of them a control character.
pub fn is_plain(text: &str, limit: usize) -> bool {
    !text.is_empty()
        && (text.len() <= limit || text.chars().count() <= limit)
        && text
            .bytes()
            .fold(true, |plain, byte| plain & (byte >= 0x20) & (byte != 0x7f))
}

/// The name of a tenant or an organization: what a locator can hold (streams/segments.py), and
/// so short that it surely has 255 characters at most once it is percent-encoded.
pub fn is_segment(text: &str) -> bool {
    text.len() <= 85
        && text != "."
        && text != ".."
        && (text.is_ascii() || !text.chars().any(char::is_control))
}

/// A positive 63-bit number in its one spelling.
pub fn is_id(text: &str) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits && !text.is_empty() && !text.starts_with('0') && text.parse::<i64>().is_ok()
}

/// 64 lower-case hexadecimal digits.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A time like 2026-05-16T12:34:56.789Z that exists.
pub fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00.000Z";
    let fits = bytes.len() == shape.len()
        && bytes.iter().zip(shape).all(|(byte, wanted)| match wanted {
            b'0' => byte.is_ascii_digit(),
            _ => byte == wanted,
        });
    if !fits {
        return false;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year > 0
        && (1..=days).contains(&day)
        && number(11, 13) < 24
        && number(14, 16) < 60
        && number(17, 19) < 60
}
