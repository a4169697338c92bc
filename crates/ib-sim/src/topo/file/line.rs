//! The pieces that lines are made of.

use super::super::{Speeds, Widths};
use super::FileFault;

/// Characters of a line that a message quotes.
const QUOTED: usize = 40;

/// The start of `text`, short enough for a message.
pub(super) fn short(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

pub(super) fn syntax(want: &'static str, found: &str) -> FileFault {
    FileFault::Syntax {
        want,
        found: short(found),
    }
}

/// A number as C's `strtoull` with base 0 takes it: decimal or 0x hex, up to the first other
/// character. Returns it with what follows.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => hex_number(hex),
        None => {
            let end = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            let (digits, rest) = text.split_at_checked(end)?;
            Some((digits.parse().ok()?, rest))
        }
    }
}

/// A hex number without prefix, as GUIDs stand in parentheses.
pub(super) fn hex_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((u64::from_str_radix(digits, 16).ok()?, rest))
}

/// A number within a range.
pub(super) fn ranged<'a>(
    what: &'static str,
    text: &'a str,
    min: u64,
    max: u64,
) -> Result<(u64, &'a str), FileFault> {
    let (value, rest) = number(text).ok_or_else(|| syntax(what, text))?;
    if (min..=max).contains(&value) {
        return Ok((value, rest));
    }
    let found = text.trim_start();
    let found = found.strip_suffix(rest).unwrap_or(found);
    Err(FileFault::Range {
        what,
        found: short(found),
        min,
        max,
    })
}

/// The text after the `=` of an assignment.
pub(super) fn assigned(line: &str) -> Result<&str, FileFault> {
    line.split_once('=')
        .map(|(_, value)| value)
        .ok_or_else(|| syntax("=", line))
}

/// What stands between the first two quotes, and what follows.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.split_once('"')
}

/// `(2c9030004e939)` at the start of `text`.
pub(super) fn guid(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start().strip_prefix('(')?;
    let text = text.strip_prefix("0x").unwrap_or(text);
    let (guid, rest) = hex_number(text)?;
    Some((guid, rest.strip_prefix(')')?))
}

/// `[12]` at the start of `text`.
pub(super) fn bracketed(text: &str) -> Option<(u64, &str)> {
    let (port, rest) = number(text.trim_start().strip_prefix('[')?)?;
    Some((port, rest.trim_start().strip_prefix(']')?))
}

/// The number after `word`, as in `lid 27`.
pub(super) fn after(text: &str, word: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    words.by_ref().find(|w| *w == word)?;
    number(words.next()?).map(|(n, _)| n)
}

/// The rate that ends a port line, `lid 5 4xEDR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label<'a> {
    /// The whole label.
    pub(super) text: &'a str,
    /// Its width, where it is one.
    pub(super) widths: Option<Widths>,
    /// Its speed, where it is one.
    pub(super) speeds: Option<Speeds>,
}

/// Finds the rate: the word after the last `lid` and its number, behind the last quote.
pub(super) fn label(text: &str) -> Option<Label<'_>> {
    let tail = text.rsplit_once('"').map_or(text, |(_, tail)| tail);
    let mut words = tail
        .split_ascii_whitespace()
        .skip_while(|w| *w != "lid")
        .skip(1);
    number(words.next()?)?;
    let text = words.next()?;
    let end = text.find('x')? + 1;
    let (width, speed) = text.split_at_checked(end)?;
    Some(Label {
        text,
        widths: Widths::up_to(width),
        speeds: Speeds::up_to(speed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_they_end() {
        assert_eq!(number(" 0x2c9(7)"), Some((0x2c9, "(7)")));
        assert_eq!(number("36 \"id\""), Some((36, " \"id\"")));
        assert_eq!(number("x"), None);
        assert_eq!(number("99999999999999999999"), None);
        assert_eq!(bracketed("[ 7 ]x"), Some((7, "x")));
        assert_eq!(guid(" (2c9030004e939) r"), Some((0x2_c903_0004_e939, " r")));
    }

    #[test]
    fn the_rate_is_behind_the_last_quote() {
        let label = label("# lid 1 lmc 0 \"a \"lid 9 1xSDR\" b\" lid 5 4xFDR10 s=1 w=2").unwrap();
        assert_eq!(
            (label.text, label.widths, label.speeds),
            ("4xFDR10", Widths::up_to("4x"), Speeds::up_to("FDR10"))
        );
        assert_eq!(super::label("\"a\"[1] w=3"), None);
        let odd = super::label("\"a\" lid 5 4x???").unwrap();
        assert_eq!((odd.widths.is_some(), odd.speeds), (true, None));
    }

    #[test]
    fn messages_quote_little() {
        assert_eq!(short(&"é".repeat(100)).chars().count(), 41);
    }
}
