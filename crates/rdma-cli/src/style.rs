//! The few styles that text has. Meaning never rests on colour alone.

use std::borrow::Cow;
use std::fmt;

use anstyle::{AnsiColor, Style};

/// A heading.
pub const HEADING: Style = Style::new().bold();
/// Right, done, healthy.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Worth a look.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// Wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// In the background.
pub const DIM: Style = Style::new().dimmed();

/// The text in that style. Where colour is off, the codes are taken out on the way to the terminal.
pub fn paint(style: Style, text: impl fmt::Display) -> impl fmt::Display {
    struct Painted<T>(Style, T);

    impl<T: fmt::Display> fmt::Display for Painted<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let Self(style, text) = self;
            write!(f, "{style}{text}{style:#}")
        }
    }

    Painted(style, text)
}

/// Text that came from outside (a node's description, a string of an image), with its control
/// characters escaped, so that it can neither move the cursor nor break a line.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}
