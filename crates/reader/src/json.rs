//! Canonical JSON: sorted keys, and numbers and text as `orjson` writes them (streams/events/canonical.py).

use serde_json::{Map, Value};

pub type Object = Map<String, Value>;

/// Parse JSON; later values of a repeated key win.
pub fn parse(text: &str) -> Result<Value, crate::error::Error> {
    serde_json::from_str(text).map_err(|why| crate::error::Error(format!("not JSON: {why}")))
}

pub fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(is_true) => out.extend_from_slice(if *is_true { b"true" } else { b"false" }),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => out.extend_from_slice(whole.to_string().as_bytes()),
            (_, Some(whole)) => out.extend_from_slice(whole.to_string().as_bytes()),
            _ => out.extend_from_slice(float_text(number.as_f64().unwrap_or(f64::NAN)).as_bytes()),
        },
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => write_object(fields, out),
    }
}

pub fn write_object(fields: &Object, out: &mut Vec<u8>) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
    out.push(b'{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

pub fn write_text(text: &str, out: &mut Vec<u8>) {
    // Control characters, quotes and backslashes are escaped, in the same way as orjson does.
    serde_json::to_writer(&mut *out, text).expect("memory does not fail");
}

/// The shortest text that reads as the same float.
pub fn float_text(value: f64) -> String {
    let Some((sign, digits, exponent)) = decimal(value) else {
        return "null".to_owned(); // JSON has no NaN
    };
    if (-5..16).contains(&exponent) {
        return format!("{sign}{}", fixed(&digits, exponent));
    }
    let plus = if exponent > 0 { "+" } else { "" };
    format!("{sign}{}e{plus}{exponent}", mantissa(&digits))
}

/// A float as Python's `str` writes it.
pub fn python_float(value: f64) -> String {
    let Some((sign, digits, exponent)) = decimal(value) else {
        return "nan".to_owned();
    };
    if (-4..16).contains(&exponent) {
        return format!("{sign}{}", fixed(&digits, exponent));
    }
    let order = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{}e{order}{:02}", mantissa(&digits), exponent.abs())
}

/// Sign, shortest digits, and the exponent of the first digit.
fn decimal(value: f64) -> Option<(&'static str, String, i32)> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{:e}", value.abs());
    let (digits, exponent) = text.split_once('e').expect("an exponent is always written");
    let sign = if value.is_sign_negative() { "-" } else { "" };
    Some((sign, digits.replace('.', ""), exponent.parse().expect("it is a number")))
}

fn mantissa(digits: &str) -> String {
    match digits.split_at(1) {
        (first, "") => first.to_owned(),
        (first, rest) => format!("{first}.{rest}"),
    }
}

fn fixed(digits: &str, exponent: i32) -> String {
    if exponent < 0 {
        return format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{digits}{}.0", "0".repeat(whole - digits.len()));
    }
    format!("{}.{}", &digits[..whole], &digits[whole..])
}

/// A JSON value as Python's `str` writes it.
pub fn python_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => python_repr(other),
    }
}

fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(is_true) => if *is_true { "True" } else { "False" }.to_owned(),
        Value::Number(number) if number.is_f64() => python_float(number.as_f64().unwrap_or(0.0)),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(python_repr).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let pairs =
                fields.iter().map(|(name, one)| format!("{}: {}", quoted(name), python_repr(one)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for one in text.chars() {
        match one {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if one == quote => out.extend(['\\', one]),
            _ if (one as u32) < 0x20 || one as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", one as u32))
            }
            _ => out.push(one),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_orjson_writes_them() {
        let pairs = [
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-7"),
            (1e15, "1000000000000000.0"),
            (1e-5, "0.00001"),
            (9.5e-6, "9.5e-6"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (5e-324, "5e-324"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (12345678901234567.0, "1.2345678901234568e+16"),
        ];
        for (value, text) in pairs {
            assert_eq!(float_text(value), text);
        }
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let pairs =
            [(1e16, "1e+16"), (1e-5, "1e-05"), (0.0001, "0.0001"), (3.0, "3.0"), (1e22, "1e+22")];
        for (value, text) in pairs {
            assert_eq!(python_float(value), text);
        }
    }

    #[test]
    fn keys_are_sorted_by_their_bytes() {
        let value = parse("{\"é\":1,\"z\":[1.0,true,null],\"a\":{\"b\":\"\\u001f\\n\",\"B\":18446744073709551615}}").unwrap();
        let text = String::from_utf8(canonical(&value)).unwrap();
        assert_eq!(text, "{\"a\":{\"B\":18446744073709551615,\"b\":\"\\u001f\\n\"},\"z\":[1.0,true,null],\"é\":1}");
    }

    #[test]
    fn values_have_the_text_that_python_gives_them() {
        let value = parse("[\"it's\", null, true, {\"a\": 1.5}]").unwrap();
        assert_eq!(python_str(&value), "[\"it's\", None, True, {'a': 1.5}]");
    }
}
